import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { type Filter, FilterChip } from './FilterChip';
import { isNarrowed } from './list-state';
import { SearchField } from './SearchField';
import styles from './table.module.css';
import type { ListControl } from './useListState';

interface Props {
  control: ListControl;
  filters?: Filter[];
  searchLabel?: string;
}

/** Search and filters above a list. */
export function ListFilters({ control, filters = [], searchLabel }: Props): ReactNode {
  const t = useT();
  const { state, change } = control;
  const setFilter = (name: string, values: string[]): void => {
    const rest = Object.fromEntries(Object.entries(state.filters).filter(([other]) => other !== name));
    change({ filters: values.length > 0 ? { ...rest, [name]: values } : rest });
  };
  return (
    <div className={styles.filters}>
      <SearchField
        value={state.search}
        label={searchLabel}
        onChange={(search) => change({ search }, { replace: true })}
      />
      {filters.map((filter) => (
        <FilterChip
          key={filter.name}
          filter={filter}
          values={state.filters[filter.name] ?? []}
          onChange={(values) => setFilter(filter.name, values)}
        />
      ))}
      {isNarrowed(state) && (
        <Button variant="subtle" size="compact-sm" onClick={() => change({ search: '', filters: {} })}>
          {t('table.filters.clear')}
        </Button>
      )}
    </div>
  );
}
