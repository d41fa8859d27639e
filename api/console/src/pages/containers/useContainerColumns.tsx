import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';

import type { UserRow } from '../../api/queries/users';
import { StatusPill } from '../../components/StatusPill';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { ObjectLink } from '../../modules/objects/ObjectLink';
import { RowMenu } from '../../modules/users/RowMenu';
import { stateOfUser } from '../../modules/users/user-state';
import { UserImage } from '../../modules/users/UserImage';
import { UserWhy } from '../../modules/users/UserWhy';

/** Columns of the list of agents; their ids are the server's names for sorting. */
export function useContainerColumns(): Column<UserRow>[] {
  const t = useT();
  return useMemo<Column<UserRow>[]>(() => {
    const none = <span className="dim">–</span>;
    return [
      {
        id: 'name',
        header: t('objects.user'),
        sortable: true,
        cell: ({ username: name }) => (
          <Link to="/admin/users/$name" params={{ name }}>
            {name}
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
        id: 'image',
        header: t('users.image'),
        sortable: true,
        drop: 1,
        cell: (user) => <UserImage user={user} />,
      },
      {
        id: 'since',
        header: t('containers.since'),
        drop: 1,
        short: true,
        cell: ({ health, standstill }) => {
          const at = standstill?.since ?? health.since;
          return at ? <Time at={at} /> : none;
        },
      },
      {
        id: 'ip',
        header: t('user.address'),
        drop: 3,
        short: true,
        cell: ({ ip }) => (ip ? <code>{ip}</code> : none),
      },
      {
        id: 'object',
        header: t('list.object'),
        drop: 3,
        cell: ({ username }) => <ObjectLink object={`container/${username}`} />,
      },
      {
        id: 'actions',
        header: t('files.actions'),
        hidesHeader: true,
        numeric: true,
        cell: (user) => <RowMenu user={user} />,
      },
    ];
  }, [t]);
}
