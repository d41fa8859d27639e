import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../../api/types';
import { Rich, useT } from '../../../i18n';

/** Binding that gives a user a skill: a group, everyone's defaults, or a binding of the user's own. */
export function BindingText({ binding }: { binding: Schemas['SkillBinding'] }): ReactNode {
  const t = useT();
  const { by, via } = binding;
  if (by === 'user') return t('user.skills.by.user');
  if (!by.startsWith('group ')) return t('user.skills.by.default');
  const group = by.slice('group '.length);
  const link = (name: string): ReactNode => (
    <Link key={name} to="/admin/groups/$name" params={{ name }}>
      {name}
    </Link>
  );
  if (!via) return <Rich k="user.skills.by.group" values={{ group: link(group) }} />;
  return <Rich k="user.skills.by.above" values={{ group: link(group), via: link(via) }} />;
}
