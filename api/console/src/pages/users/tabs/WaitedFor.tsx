import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Rich } from '../../../i18n';

const SECTIONS: Record<string, string> = { image: 'images', adapter: 'agent', skill: 'skills' };

/** Names the object that something waits for, as a link where it has a page. */
export function WaitedFor({ object }: { object: string }): ReactNode {
  const at = object.indexOf('/');
  const [kind, name] = [object.slice(0, at), object.slice(at + 1)];
  const section = SECTIONS[kind];
  const ofUser = kind === 'container' || kind === 'user' || kind === 'agent-config';
  const link = ofUser ? (
    <Link key="object" to="/admin/users/$name" params={{ name }}>
      {object}
    </Link>
  ) : section === undefined ? (
    <code key="object">{object}</code>
  ) : (
    <Link key="object" to={`/admin/${section}` as '/admin/images'} search={{ search: name }}>
      {object}
    </Link>
  );
  return (
    <div>
      <Rich k="user.waits.for" values={{ object: link }} />
    </div>
  );
}
