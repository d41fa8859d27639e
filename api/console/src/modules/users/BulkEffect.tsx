import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import dialog from '../../components/dialog.module.css';
import { useT } from '../../i18n';
import { ArchiveNote } from './ArchiveNote';
import { BULK_TEXTS, SKIP_TEXTS } from './bulk-texts';
import styles from './users.module.css';

interface Props {
  answer: Schemas['UsersChanged'];
  /** The image or group that it leads to. */
  goal: string;
}

/** Effect of an action: users to which it applies, and users left out with the reason. */
export function BulkEffect({ answer, goal }: Props): ReactNode {
  const t = useT();
  const { action, total, users, skipped, skipped_users: left, skipped_codes: codes, archive } = answer;
  const more = total - users.length;
  return (
    <>
      <p>{total === 0 ? t('bulk.none') : t(BULK_TEXTS[action].effect, { count: total, goal })}</p>
      {total > 0 && (
        <div className={styles.names}>
          {users.join(', ')}
          {more > 0 && ` ${t('bulk.more', { count: more })}`}
        </div>
      )}
      {archive && <ArchiveNote archive={archive} />}
      {skipped > 0 && (
        <div>
          <strong>{t('bulk.skipped', { count: skipped })}</strong>
          <ul className={dialog.list}>
            {Object.entries(codes).map(([code, count]) => {
              const names = left.filter((one) => one.code === code);
              const key = SKIP_TEXTS[code];
              return (
                <li key={code}>
                  {key === undefined ? <span lang="en">{names[0]?.reason ?? code}</span> : t(key)}
                  {': '}
                  {names.map(({ username }) => username).join(', ')}
                  {count > names.length && ` ${t('bulk.more', { count: count - names.length })}`}
                </li>
              );
            })}
          </ul>
        </div>
      )}
    </>
  );
}
