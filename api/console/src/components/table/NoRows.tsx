import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { EmptyState } from '../EmptyState';
import { isNarrowed } from './list-state';
import type { ListControl } from './useListState';

/** Tells an empty list from filters that nothing fits. */
export function NoRows({ control, empty }: { control: ListControl; empty: ReactNode }): ReactNode {
  const t = useT();
  if (!isNarrowed(control.state)) return empty;
  const clear = (
    <Button onClick={() => control.change({ search: '', filters: {} })}>{t('table.filters.clear')}</Button>
  );
  return <EmptyState title={t('table.no.match')} text={t('table.no.match.text')} action={clear} />;
}
