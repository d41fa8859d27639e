import { Outlet } from '@tanstack/react-router';
import { type ReactNode, useSyncExternalStore } from 'react';

import { onOtherAccount, otherAccount } from '../api/account';
import { NewVersion } from './NewVersion';
import { OtherAccount } from './OtherAccount';
import { SessionDialog } from './SessionDialog';

/** Everything that may appear above any page. */
export function Root(): ReactNode {
  const other = useSyncExternalStore(onOtherAccount, otherAccount);
  if (other !== undefined) return <OtherAccount name={other} />;
  return (
    <>
      <NewVersion />
      <Outlet />
      <SessionDialog />
    </>
  );
}
