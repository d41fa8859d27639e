import type { ReactNode } from 'react';

import type { UserRow } from '../../api/queries/users';
import { Actor } from '../../components/Actor';
import { Time } from '../../components/Time';
import { Rich } from '../../i18n';
import { useReasons } from '../../i18n/reasons';
import styles from './users.module.css';

/** Reason of the shown state of a user, and its begin. */
export function UserWhy({ user }: { user: UserRow }): ReactNode {
  const explain = useReasons();
  const { health, standstill } = user;
  if (standstill?.by && standstill.since) {
    return (
      <Rich
        k="users.why.by"
        values={{
          by: <Actor key="by" name={standstill.by} />,
          time: <Time key="time" at={standstill.since} />,
        }}
      />
    );
  }
  if (standstill) {
    return (
      <span lang="en" className={styles.message} title={standstill.message}>
        {standstill.message}
      </span>
    );
  }
  if (health.status === 'True') return <span className="dim">–</span>;
  return (
    <>
      {explain(health.reason).title}
      {health.message !== '' && (
        <small lang="en" className={styles.message} title={health.message}>
          {health.message}
        </small>
      )}
    </>
  );
}
