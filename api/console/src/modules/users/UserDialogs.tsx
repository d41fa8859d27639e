import type { ReactNode } from 'react';

import type { AskedAction } from './applicable';
import { BulkDialog } from './BulkDialog';
import { DebugUser } from './DebugUser';
import { DeleteUser } from './DeleteUser';
import { ResetPassword } from './ResetPassword';
import { RotateToken } from './RotateToken';

interface Props {
  name: string;
  action: AskedAction | undefined;
  onClose: () => void;
  /** Called when the user's removal was requested. */
  onDeleted?: () => void;
}

/** The dialog of the chosen action on a user. */
export function UserDialogs({ name, action, onClose, onDeleted }: Props): ReactNode {
  switch (action) {
    case undefined:
      return null;
    case 'delete':
      return <DeleteUser name={name} onClose={onClose} onDeleted={onDeleted} />;
    case 'debug':
      return <DebugUser name={name} onClose={onClose} />;
    case 'reset-password':
      return <ResetPassword name={name} onClose={onClose} />;
    case 'rotate-token':
      return <RotateToken name={name} onClose={onClose} />;
    default:
      return <BulkDialog action={action} target={{ users: [name] }} onClose={onClose} />;
  }
}
