import { Link } from '@tanstack/react-router';

import type { Schemas } from '../../api/types';
import { StatusPill } from '../../components/StatusPill';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import type { T } from '../../i18n';
import { stateOf } from '../../modules/state';
import { Why } from './Why';

type Item = Schemas['ObjectHeader'];

/** Columns of objects of any kind; those of a user lead to the user. */
export function objectColumns(t: T): Column<Item>[] {
  return [
    {
      id: 'name',
      header: t('objects.name'),
      cell: ({ kind, name }) =>
        kind === 'container' ? (
          <Link to="/admin/users/$name" params={{ name }}>
            {name}
          </Link>
        ) : (
          name
        ),
    },
    {
      id: 'state',
      header: t('objects.state'),
      cell: ({ conditions }) => <StatusPill state={stateOf(conditions)} />,
    },
    { id: 'why', header: t('objects.why'), cell: ({ conditions }) => <Why conditions={conditions} /> },
    { id: 'created', header: t('objects.created'), cell: (item) => <Time at={item.created_at} />, drop: 1 },
  ];
}
