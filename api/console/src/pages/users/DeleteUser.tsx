import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import type { Schemas } from '../../api/types';
import { ActionPreview } from '../../components/ActionPreview';
import { Bytes } from '../../components/Bytes';
import { useToasts } from '../../components/toast-store';
import { Rich, useT } from '../../i18n';
import { ArchiveNote } from './ArchiveNote';
import styles from './users.module.css';

/** Dialog that says what the removal of a user removes and what is kept, and asks for the name. */
export function DeleteUser({ name, onClose }: { name: string; onClose: () => void }): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const navigate = useNavigate();
  const remove = async (): Promise<void> => {
    await post('/api/admin/users/delete', { username: name, wait: 0 });
    toasts.done(t('delete.requested', { name }));
    void client.invalidateQueries({ queryKey: ['list', 'user'] });
    await navigate({ to: '/admin/users' });
  };
  return (
    <ActionPreview<Schemas['UserRemoval']>
      opened
      onClose={onClose}
      title={t('delete.title', { name })}
      previewKey={['delete', name]}
      preview={async (signal) => {
        const body = { username: name, dry_run: true };
        const path = '/api/admin/users/delete';
        return (await post<{ removal: Schemas['UserRemoval'] }>(path, body, { signal })).removal;
      }}
      verb={() => t('delete.verb', { name })}
      danger
      typedName={name}
      act={remove}
    >
      {({ sessions, executors, groups, channels, cookies, used_bytes: used, archive, afterwards }) => (
        <>
          <p>{t('delete.now')}</p>
          <ul className={styles.list}>
            {sessions + executors > 0 && <li>{t('delete.sessions', { sessions, executors })}</li>}
            {groups.length > 0 && <li>{t('delete.groups', { groups: groups.join(', ') })}</li>}
            {channels.length > 0 && <li>{t('delete.channels', { channels: channels.join(', ') })}</li>}
            {cookies > 0 && <li>{t('delete.cookies', { count: cookies })}</li>}
            {used !== null && (
              <li>
                <Rich k="delete.files" values={{ size: <Bytes key="size" value={used} /> }} />
              </li>
            )}
          </ul>
          <ArchiveNote archive={archive} />
          <small lang="en">{afterwards}</small>
        </>
      )}
    </ActionPreview>
  );
}
