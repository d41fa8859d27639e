import type { ReactNode } from 'react';

import { AccountSessions } from '../../../modules/users/AccountSessions';
import { useUserName } from '../useUserName';

/** Where a user is signed in. */
export function SessionsTab(): ReactNode {
  return <AccountSessions name={useUserName()} effect="user.sessions.end.text" />;
}
