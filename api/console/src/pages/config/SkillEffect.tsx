import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { useT } from '../../i18n';
import styles from './config.module.css';
import { NameLinks } from './NameLinks';
import { groupSkillChanges } from './skill-changes';

const TEXTS = {
  gains: 'config.skills.gain',
  loses: 'config.skills.lose',
  changes: 'config.skills.change',
} as const;

/** Which users get and lose which skills. */
export function SkillEffect({ changes }: { changes: Schemas['SkillChange'][] }): ReactNode {
  const t = useT();
  return (
    <ul className={styles.plain}>
      {groupSkillChanges(changes).map(({ kind, skill, users }) => (
        <li key={`${kind} ${skill}`}>
          {t(TEXTS[kind], { count: users.length, skill })}: <NameLinks names={users} total={users.length} />
        </li>
      ))}
    </ul>
  );
}
