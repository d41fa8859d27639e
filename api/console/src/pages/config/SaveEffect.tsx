import type { ReactNode } from 'react';

import type { ConfigSaved } from '../../api/queries/config';
import { useT } from '../../i18n';
import styles from './config.module.css';
import { NameLinks } from './NameLinks';
import { SkillEffect } from './SkillEffect';

interface Props {
  answer: ConfigSaved;
  /** Agents that are changed at once. */
  atOnce: unknown;
}

/** Consequences of a save for agents and skills, and what has no effect. */
export function SaveEffect({ answer, atOnce }: Props): ReactNode {
  const t = useT();
  const { restarts, restarted_users: users, skill_changes: skills = [], warnings = [], purge } = answer;
  return (
    <>
      {!purge && (
        <div>
          <p>{t('config.restarts', { count: restarts, most: Number(atOnce) })}</p>
          {restarts > 0 && (
            <p className={styles.names}>
              <NameLinks names={users} total={restarts} />
            </p>
          )}
        </div>
      )}
      {skills.length > 0 && <SkillEffect changes={skills} />}
      {warnings.map((warning) => (
        <p key={warning} lang="en" className={styles.warning}>
          {warning}
        </p>
      ))}
    </>
  );
}
