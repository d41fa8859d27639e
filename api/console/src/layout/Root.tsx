import { Outlet } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { NewVersion } from './NewVersion';
import { SessionDialog } from './SessionDialog';

/** Everything that may appear above any page. */
export function Root(): ReactNode {
  return (
    <>
      <NewVersion />
      <Outlet />
      <SessionDialog />
    </>
  );
}
