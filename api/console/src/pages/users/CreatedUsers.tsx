import { Button } from '@mantine/core';
import IconDownload from '@tabler/icons-react/icons/IconDownload';
import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { Copy } from '../../components/Copy';
import dialog from '../../components/dialog.module.css';
import { saveFile } from '../../components/save-file';
import { useT } from '../../i18n';
import { writeUsers } from './parse-users';
import styles from './users.module.css';

interface Props {
  results: Schemas['BatchOutcome'][];
  onClose: () => void;
}

/** The created users with their passwords, which are shown this once, and the names that were refused. */
export function CreatedUsers({ results, onClose }: Props): ReactNode {
  const t = useT();
  const created = results.filter(({ success }) => success);
  const refused = results.filter(({ success }) => !success);
  const text = created.map(({ username, password }) => `${username}\t${password ?? ''}`).join('\n');
  const save = (): void =>
    saveFile(new Blob([writeUsers(created)], { type: 'text/csv;charset=utf-8' }), 'users.csv');
  return (
    <>
      {refused.length > 0 && (
        <div role="alert">
          <strong>{t('create.refused', { count: refused.length })}</strong>
          <ul className={dialog.list}>
            {refused.map(({ username, error }, at) => (
              <li key={at}>
                {username}: <span lang="en">{error}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      {created.length > 0 && (
        <>
          <p>{t('create.once')}</p>
          <div className={styles.scroll}>
            <table aria-label={t('users.created')} className={styles.passwords}>
              <thead>
                <tr>
                  <th scope="col">{t('users.name')}</th>
                  <th scope="col">{t('create.password')}</th>
                </tr>
              </thead>
              <tbody>
                {created.map(({ username, password }) => (
                  <tr key={username}>
                    <td>{username}</td>
                    <td className="mono">{password ?? t('create.given')}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <div className="row">
            <Copy text={text} label={t('create.copy')} />
            <Button size="compact-sm" leftSection={<IconDownload size={14} aria-hidden />} onClick={save}>
              {t('create.download')}
            </Button>
          </div>
        </>
      )}
      <div className={dialog.buttons}>
        <Button variant="filled" onClick={onClose}>
          {t('create.close')}
        </Button>
      </div>
    </>
  );
}
