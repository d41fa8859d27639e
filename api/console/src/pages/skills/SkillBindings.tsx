import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { DetailCard } from '../../components/DetailCard';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import styles from './skills.module.css';

/** Sources that give a skill to users: everyone's defaults, groups, bindings of single users. */
export function SkillBindings({ skill }: { skill: Schemas['Skill'] }): ReactNode {
  const t = useT();
  const { bound_to_everyone: everyone, bound_groups: groups, user_count: count } = skill;
  return (
    <DetailCard title={t('skill.bindings')}>
      <ul className={styles.list}>
        {everyone && <li>{t('skill.everyone')}</li>}
        {groups.map((name) => (
          <li key={name}>
            {t('users.group')}{' '}
            <Link to="/admin/groups/$name" params={{ name }}>
              {visibleText(name)}
            </Link>{' '}
            <small>
              <Link to="/admin/users" search={{ group: name }}>
                {t('group.users')}
              </Link>
            </small>
          </li>
        ))}
        {!everyone && groups.length === 0 && count > 0 && <li>{t('skill.single', { count })}</li>}
      </ul>
      {!everyone && groups.length === 0 && count === 0 && <p className="dim">{t('skill.unbound')}</p>}
      {count > 0 && <small>{t('skill.bindings.note')}</small>}
    </DetailCard>
  );
}
