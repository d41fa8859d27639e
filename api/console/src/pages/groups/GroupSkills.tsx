import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { DetailCard } from '../../components/DetailCard';
import { Rich, useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import styles from './groups.module.css';

interface Props {
  skills: string[];
  /** Names of the groups above, whose skills the members get as well. */
  above: string[];
}

/** Skills that a group gives to its members. */
export function GroupSkills({ skills, above }: Props): ReactNode {
  const t = useT();
  return (
    <DetailCard title={t('section.skills')}>
      {skills.length === 0 && <p className="dim">{t('group.skills.none')}</p>}
      <ul className={styles.list}>
        {skills.map((name) => (
          <li key={name}>
            <Link to="/admin/skills/$name" params={{ name }}>
              {visibleText(name)}
            </Link>
          </li>
        ))}
      </ul>
      {above.length > 0 && (
        <small>
          <Rich
            k="group.skills.above"
            values={{
              groups: above.map((name, at) => (
                <span key={name}>
                  {at > 0 && ', '}
                  <Link to="/admin/groups/$name" params={{ name }}>
                    {visibleText(name)}
                  </Link>
                </span>
              )),
            }}
          />
        </small>
      )}
    </DetailCard>
  );
}
