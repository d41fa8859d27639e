import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useId } from 'react';

import { ownCookiesQuery, ownSkillsQuery } from '../../api/queries/own';
import { useSession } from '../../app/useSession';
import { useT } from '../../i18n';
import styles from './manage.module.css';

/** Links to the pages that are needed less often. */
export function MoreCard(): ReactNode {
  const t = useT();
  const id = useId();
  const { auth_mode: mode } = useSession();
  const { data: cookies } = useQuery(ownCookiesQuery);
  const { data: skills } = useQuery(ownSkillsQuery);
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id} className="visually-hidden">
        {t('more.title')}
      </h2>
      <ul className={styles.links}>
        <li>
          <Link to="/manage/skills">{t('skills.title')}</Link>{' '}
          {skills && <small>{t('more.count', { count: skills.total })}</small>}
        </li>
        <li>
          <Link to="/manage/cookies">{t('cookies.title')}</Link>{' '}
          {cookies && <small>{t('more.sites', { count: cookies.total })}</small>}
        </li>
        <li>
          <Link to="/manage/files/trash">{t('files.trash')}</Link>
        </li>
        <li>
          <Link to="/manage/account">{t(mode === 'local' ? 'account.link.password' : 'account.link')}</Link>
        </li>
      </ul>
    </section>
  );
}
