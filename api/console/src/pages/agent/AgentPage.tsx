import type { ReactNode } from 'react';

import { ObjectsPage } from '../objects/ObjectsPage';
import { ModelCard } from './ModelCard';

/** The agent program of all users: its model, and its packages. */
export function AgentPage(): ReactNode {
  return (
    <ObjectsPage>
      <ModelCard />
    </ObjectsPage>
  );
}
