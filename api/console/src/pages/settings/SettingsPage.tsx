import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { type ReactNode, useEffect, useMemo } from 'react';

import { Failure } from '../../api/failure';
import { configQuery, configSchemaQuery } from '../../api/queries/settings';
import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { ListFilters } from '../../components/table/ListFilters';
import type { Search } from '../../components/table/list-state';
import { NoRows } from '../../components/table/NoRows';
import tables from '../../components/table/table.module.css';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { useSettingNames } from '../../i18n/settings';
import { readSettings } from '../../modules/settings';
import { filterSettings, nameSettings } from './filter-settings';
import { SettingsTable } from './SettingsTable';

const FILTERS = ['changed'] as const;
const COMMANDS = [
  'agentyard config get KEY',
  'agentyard config set KEY=VALUE',
  'agentyard config unset KEY',
  'agentyard config history',
  'agentyard config rollback REVISION',
];

/** The service's settings with their values, and the commands that change them. */
export function SettingsPage(): ReactNode {
  const t = useT();
  const names = useSettingNames();
  const control = useListState(FILTERS);
  const search: Search = useSearch({ strict: false });
  const chosen = typeof search.key === 'string' ? search.key : undefined;
  const config = useQuery(configQuery);
  const described = useQuery(configSchemaQuery);
  const settings = useMemo(
    () =>
      config.data && described.data && names
        ? nameSettings(readSettings(described.data.schema, config.data), names)
        : undefined,
    [config.data, described.data, names],
  );
  const isLoaded = settings !== undefined;
  useEffect(() => {
    const row = chosen === undefined || !isLoaded ? null : document.getElementById(chosen);
    row?.scrollIntoView({ block: 'center' });
    row?.focus({ preventScroll: true });
  }, [chosen, isLoaded]);
  const error = config.error ?? described.error;
  const retry = (): void => {
    void config.refetch();
    void described.refetch();
  };
  const groups = filterSettings(
    settings ?? [],
    control.state.search,
    control.state.filters.changed !== undefined,
  );
  const changed = t('settings.changed');
  return (
    <div className="stack">
      <div>
        <h1>{t('section.settings')}</h1>
        {settings && (
          <small>
            {t('settings.count', {
              total: settings.length,
              changed: settings.filter(({ isDefault }) => !isDefault).length,
            })}
          </small>
        )}
      </div>
      <div>
        <ListFilters
          control={control}
          filters={[{ name: 'changed', label: changed, options: [{ value: 'true', text: changed }] }]}
          searchLabel={t('settings.search')}
        />
        {error && <ErrorState failure={Failure.from(error)} onRetry={retry} />}
        {(isLoaded || !error) && (
          <div className={tables.frame} aria-busy={!isLoaded}>
            {!isLoaded && <LoadingState rows={12} />}
            {groups.length > 0 && names && (
              <SettingsTable groups={groups} groupTitle={names.group} chosen={chosen} />
            )}
            {isLoaded && groups.length === 0 && (
              <NoRows control={control} empty={<EmptyState title={t('objects.none')} />} />
            )}
          </div>
        )}
      </div>
      <CommandLine title={t('objects.commands')} commands={COMMANDS} />
    </div>
  );
}
