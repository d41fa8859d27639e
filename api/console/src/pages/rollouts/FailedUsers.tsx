import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { RolloutUser } from '../../api/queries/rollouts';
import { Copy } from '../../components/Copy';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { FailureReason } from './FailureReason';
import styles from './rollouts.module.css';

/** Users who could not be moved: why, and the last lines of the log of each new container. */
export function FailedUsers({ users, total }: { users: RolloutUser[]; total: number }): ReactNode {
  const t = useT();
  if (users.length === 0) return null;
  return (
    <>
      {users.map((user) => {
        const { username: name, finished_at: end, message } = user;
        // A server of an older version sends no lines.
        const lines = ((user.log as string[] | undefined) ?? []).map(visibleText);
        return (
          <section
            key={name}
            className={`card ${styles.failed ?? ''}`}
            aria-label={t('rollout.failed.of', { name })}
          >
            <h2 className={styles.linked}>
              <Rich
                k="rollout.failed.of"
                values={{
                  name: (
                    <Link key="name" to="/admin/users/$name" params={{ name }}>
                      {name}
                    </Link>
                  ),
                }}
              />
            </h2>
            <FailureReason message={message} />
            {lines.length > 0 && (
              <>
                <div className="row">
                  <small className="grow">{t('rollout.lines', { count: lines.length })}</small>
                  <Copy text={lines.join('\n')} />
                </div>
                {/* A region that scrolls has to be reached by keyboard. */}
                {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
                <pre dir="ltr" tabIndex={0} aria-label={t('rollout.lines.of', { name })}>
                  {lines.join('\n')}
                </pre>
              </>
            )}
            <div className="row">
              <Link to="/admin/users/$name/log" params={{ name }}>
                {t('rollout.open.log')}
              </Link>
              {end && (
                <small>
                  <Time at={end} />
                </small>
              )}
            </div>
          </section>
        );
      })}
      {users.length < total && <small>{t('rollout.failed.more', { count: total - users.length })}</small>}
    </>
  );
}
