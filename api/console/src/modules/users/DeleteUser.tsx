import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import type { Schemas } from '../../api/types';
import { ActionPreview } from '../../components/ActionPreview';
import { Bytes } from '../../components/Bytes';
import dialog from '../../components/dialog.module.css';
import { useToasts } from '../../components/toast-store';
import { Rich, useT } from '../../i18n';
import { ArchiveNote } from './ArchiveNote';

interface Props {
  name: string;
  onClose: () => void;
  /** Called when the removal was requested. */
  onDeleted?: () => void;
}

/** Dialog that says what the removal of a user removes and what is kept, and asks for the name. */
export function DeleteUser({ name, onClose, onDeleted }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const remove = async (): Promise<void> => {
    await post('/api/admin/users/delete', { username: name, wait: 0 });
    toasts.done(t('delete.requested', { name }));
    void client.invalidateQueries({ queryKey: ['list', 'user'] });
    onDeleted?.();
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
          <ul className={dialog.list}>
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
