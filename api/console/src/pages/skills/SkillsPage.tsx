import type { ReactNode } from 'react';

import { ObjectsPage } from '../objects/ObjectsPage';
import { RepositoryList } from './RepositoryList';

/** All skills, and the repositories that they come from. */
export function SkillsPage(): ReactNode {
  return <ObjectsPage after={<RepositoryList />} />;
}
