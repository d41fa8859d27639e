import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';

import { useT } from '../../i18n';
import styles from './config.module.css';

/** Names that are shown. */
const MOST = 12;

/** The first of several users, each a link. */
export function NameLinks({ names, total }: { names: string[]; total: number }): ReactNode {
  const t = useT();
  const shown = names.slice(0, MOST);
  const more = total - shown.length;
  return (
    <>
      {shown.map((name, at) => (
        <Fragment key={name}>
          {at > 0 && ', '}
          <Link className={styles.textLink} to="/admin/users/$name" params={{ name }}>
            {name}
          </Link>
        </Fragment>
      ))}
      {more > 0 && ` ${t('bulk.more', { count: more })}`}
    </>
  );
}
