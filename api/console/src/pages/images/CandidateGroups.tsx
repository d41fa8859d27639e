import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { useT } from '../../i18n';

interface Props {
  groups: Schemas['ImageGroup'][];
  image: string;
}

/** Groups whose members have another image, each with the way to move them. */
export function CandidateGroups({ groups, image }: Props): ReactNode {
  const t = useT();
  if (groups.length === 0) return null;
  return (
    <>
      <span className="dim">{t('candidates.groups')}</span>
      {groups.map(({ name, count }) => (
        <Link key={name} to="/admin/rollouts/new" search={{ image, who: 'groups', group: name }}>
          {t('candidates.group', { name, count })}
        </Link>
      ))}
    </>
  );
}
