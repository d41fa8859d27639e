import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { TaskWithResults } from '../../api/queries/tasks';
import { TonePill } from '../../components/StatusPill';
import { useT } from '../../i18n';
import type { MessageKey } from '../../i18n';
import type { Tone } from '../../modules/state';
import styles from './tasks.module.css';

const STATES: Record<string, { tone: Tone; key: MessageKey }> = {
  done: { tone: 'ok', key: 'task.one.done' },
  failed: { tone: 'bad', key: 'task.one.failed' },
  cancelled: { tone: 'off', key: 'task.one.cancelled' },
  running: { tone: 'wait', key: 'task.one.running' },
  pending: { tone: 'wait', key: 'task.one.pending' },
};
/** Kinds that belong to the user of the same name. */
const OF_USERS = new Set(['user', 'container', 'agent-config', 'skill-set']);

/** The result for each object of a task, those that need manual action first. */
export function TaskResults({ task }: { task: TaskWithResults }): ReactNode {
  const t = useT();
  const { results, total } = task;
  if (results === undefined) return <p className="dim">{t('task.results.gone')}</p>;
  return (
    <section className="card">
      <h2>{t('task.results')}</h2>
      <ul className={styles.results}>
        {results.map(({ object, state, message }) => {
          const at = object.indexOf('/');
          const name = object.slice(at + 1);
          const { tone, key } = STATES[state] ?? { tone: 'unknown', key: 'task.one.pending' };
          return (
            <li key={object}>
              {OF_USERS.has(object.slice(0, at)) ? (
                <Link to="/admin/users/$name" params={{ name }}>
                  {name}
                </Link>
              ) : (
                <span>{object}</span>
              )}
              <span>
                <TonePill tone={tone}>{t(key)}</TonePill>
              </span>
              <span lang="en">{message}</span>
            </li>
          );
        })}
      </ul>
      {results.length < total && <small>{t('task.results.more', { count: total - results.length })}</small>}
    </section>
  );
}
