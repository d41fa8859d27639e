import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';

import type { UserRow } from '../../api/queries/users';
import { Bytes } from '../../components/Bytes';
import { StatusPill } from '../../components/StatusPill';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { stateOfUser } from '../../modules/users/user-state';
import { UserImage } from '../../modules/users/UserImage';
import styles from './users.module.css';
import { UserWhy } from '../../modules/users/UserWhy';

/** Columns of the list of users; their ids are the server's names for sorting. */
export function useUserColumns(): Column<UserRow>[] {
  const t = useT();
  return useMemo<Column<UserRow>[]>(() => {
    const none = <span className="dim">–</span>;
    return [
      {
        id: 'name',
        header: t('users.name'),
        sortable: true,
        cell: ({ username }) => (
          <Link to="/admin/users/$name" params={{ name: username }} className={styles.name}>
            {username}
          </Link>
        ),
      },
      {
        id: 'status',
        header: t('users.state'),
        sortable: true,
        cell: (user) => <StatusPill state={stateOfUser(user)} />,
      },
      { id: 'why', header: t('users.why'), cell: (user) => <UserWhy user={user} /> },
      {
        id: 'groups',
        header: t('users.groups'),
        drop: 2,
        cell: ({ groups }) =>
          groups.length > 0 ? <span className={styles.groups}>{groups.join(', ')}</span> : none,
      },
      {
        id: 'image',
        header: t('users.image'),
        sortable: true,
        drop: 1,
        cell: (user) => <UserImage user={user} />,
      },
      {
        id: 'last_login_at',
        header: t('users.last.login'),
        sortable: true,
        drop: 3,
        cell: ({ last_login_at: at }) =>
          at ? <Time at={at} /> : <span className="dim">{t('users.never')}</span>,
      },
      {
        id: 'used',
        header: t('users.disk'),
        sortable: true,
        numeric: true,
        drop: 3,
        cell: ({ used_bytes: used }) => (typeof used === 'number' ? <Bytes value={used} /> : none),
      },
    ];
  }, [t]);
}
