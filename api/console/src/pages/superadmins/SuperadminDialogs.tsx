import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import { ActionPreview } from '../../components/ActionPreview';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { ResetPassword } from '../../modules/users/ResetPassword';

/** An action on an administrator that shows a dialog first. */
export interface AskedOfSuperadmin {
  action: 'reset' | 'delete';
  name: string;
}

interface Props {
  asked: AskedOfSuperadmin | undefined;
  onClose: () => void;
  /** Called when the account was deleted. */
  onDeleted: () => void;
}

/** The dialog of the chosen action on an administrator. */
export function SuperadminDialogs({ asked, onClose, onDeleted }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  if (asked === undefined) return null;
  const { action, name } = asked;
  if (action === 'reset') {
    return (
      <ResetPassword
        name={name}
        path="/api/admin/superadmins/reset"
        effect="superadmins.reset.text"
        onClose={onClose}
      />
    );
  }
  const remove = async (): Promise<void> => {
    await post('/api/admin/superadmins/delete', { username: name });
    toasts.done(t('superadmins.deleted', { name }));
    const queryKey = ['list', 'superadmin'];
    // A list that is opened next must not begin with the deleted account.
    client.removeQueries({ queryKey, type: 'inactive' });
    await client.invalidateQueries({ queryKey });
    onDeleted();
  };
  return (
    <ActionPreview
      opened
      onClose={onClose}
      title={t('delete.title', { name })}
      previewKey={['delete-superadmin', name]}
      preview={() => Promise.resolve(true)}
      verb={() => t('delete.verb', { name })}
      danger
      act={remove}
    >
      {() => <p>{t('superadmins.delete.text', { name })}</p>}
    </ActionPreview>
  );
}
