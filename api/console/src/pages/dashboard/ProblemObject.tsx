import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { ObjectLink } from '../../modules/objects/ObjectLink';

/** Kinds whose objects are shown on the page of the user of the same name. */
const OF_USERS: ReadonlySet<string> = new Set(['user', 'container', 'agent-config', 'skill-set']);

/** Returns true for a kind whose objects belong to one user each. */
export function isOfUsers(kind: string): boolean {
  return OF_USERS.has(kind);
}

/** Name of an object of a problem, which leads to its page. */
export function ProblemObject({ kind, name }: { kind: string; name: string }): ReactNode {
  const t = useT();
  if (kind === 'service') return <Link to="/admin/reconcile">{name}</Link>;
  if (isOfUsers(kind))
    return (
      <Link to="/admin/users/$name" params={{ name }}>
        {name}
      </Link>
    );
  if (kind === 'rollout')
    return (
      <Link to="/admin/rollouts/$id" params={{ id: name }}>
        {t('dashboard.rollout')}
      </Link>
    );
  return <ObjectLink object={`${kind}/${name}`} />;
}
