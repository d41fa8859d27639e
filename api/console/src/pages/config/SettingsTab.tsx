import { useSearch } from '@tanstack/react-router';
import type { FormEvent, ReactNode } from 'react';

import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import { ListFilters } from '../../components/table/ListFilters';
import type { Search } from '../../components/table/list-state';
import { NoRows } from '../../components/table/NoRows';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { GENERAL_COMMANDS, pendingCommands } from './commands';
import { useConfigForm } from './config-form';
import styles from './config.module.css';
import { filterSettings } from './filter-settings';
import { SectionCard } from './SectionCard';
import { SectionList } from './SectionList';
import { sectionOfKey, sectionsOf } from './sections';
import { useReveal } from './useReveal';

const FILTERS = ['changed'] as const;

/** The settings of a section, or those of all sections that a search finds. */
export function SettingsTab(): ReactNode {
  const t = useT();
  const { settings, pending, revealed, review } = useConfigForm();
  const control = useListState(FILTERS);
  const search: Search = useSearch({ strict: false });
  const chosen = typeof search.key === 'string' ? search.key : undefined;
  const { state } = control;
  const changedOnly = state.filters.changed !== undefined;
  const isSearch = state.search !== '' || changedOnly;
  const sections = sectionsOf(settings.map(({ group }) => group));
  const asked = typeof search.section === 'string' ? search.section : chosen && sectionOfKey(chosen);
  const current = sections.find(({ id }) => id === asked) ?? sections[0];
  const found = filterSettings(
    settings,
    isSearch ? sections : sections.filter((section) => section === current),
    state.search,
    changedOnly,
  );
  useReveal(chosen, revealed, `${current?.id ?? ''} ${String(isSearch)}`);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (pending.keys.length > 0) review();
  };
  const commands = pendingCommands(pending.changes);
  const changed = t('config.changed.only');
  return (
    <>
      <ListFilters
        control={control}
        filters={[{ name: 'changed', label: changed, options: [{ value: 'true', text: changed }] }]}
        searchLabel={t('config.search')}
      />
      <div className={styles.columns}>
        <SectionList sections={sections} current={isSearch ? undefined : current?.id} />
        <div className="stack">
          {found.length > 0 && (
            <form className="stack" onSubmit={submit} noValidate autoComplete="off">
              {found.map((shown) => (
                <SectionCard key={shown.section.id} shown={shown} chosen={chosen} />
              ))}
            </form>
          )}
          {found.length === 0 && (
            <div className="card">
              <NoRows control={control} empty={<EmptyState title={t('objects.none')} />} />
            </div>
          )}
          <CommandLine commands={commands.length > 0 ? commands : GENERAL_COMMANDS} />
        </div>
      </div>
    </>
  );
}
