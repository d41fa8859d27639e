import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import dialog from '../../components/dialog.module.css';
import states from '../../components/states.module.css';
import { type MessageKey, useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';

/** Names of a list that are shown. */
const MOST = 20;

/** Users and groups that a synchronisation would create, change, disable and remove. */
export function SyncPlan({ plan }: { plan: Schemas['Synced'] }): ReactNode {
  const t = useT();
  const { mass_removal: held, skipped_entries: skipped = [] } = plan;
  const parts: [MessageKey, string[], number][] = [
    ['auth.plan.add', plan.add, plan.added],
    ['auth.plan.change', plan.change, plan.changed],
    ['auth.plan.rename', plan.rename.map(({ from, to }) => `${from} → ${to}`), plan.renamed],
    ['auth.plan.identify', [], plan.identified],
    ['auth.plan.disable', plan.disable, plan.disabled],
    ['auth.plan.remove', plan.remove, plan.removed],
    ['auth.plan.add.groups', plan.add_groups, plan.groups_added],
    ['auth.plan.remove.groups', plan.remove_groups, plan.groups_removed],
    ['auth.plan.skipped', skipped.map(({ name, reason }) => `${name} (${reason})`), plan.skipped],
  ];
  const changes = parts.filter(([, names, count]) => names.length + count > 0);
  return (
    <>
      {changes.length === 0 && <p>{t('auth.plan.none')}</p>}
      <ul className={dialog.list}>
        {changes.map(([text, names, count]) => (
          <li key={text}>
            {t(text, { count: Math.max(count, names.length) })}
            {names.length > 0 && `: ${names.slice(0, MOST).map(visibleText).join(', ')}`}
            {Math.max(count, names.length) > MOST &&
              ` ${t('bulk.more', { count: Math.max(count, names.length) - MOST })}`}
          </li>
        ))}
      </ul>
      {held && (
        <section className={states.sentence} data-tone="warn">
          <strong>{t('auth.plan.held')}</strong>
          <span lang="en">{visibleText(held.what)}</span>
        </section>
      )}
    </>
  );
}
