import type { Schemas } from '../../api/types';
import { StatusPill } from '../../components/StatusPill';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import type { T } from '../../i18n';
import { ObjectLink } from '../../modules/objects/ObjectLink';
import { stateOf } from '../../modules/state';
import { Why } from './Why';

type Item = Schemas['ObjectHeader'];

/** Columns of objects of any kind. */
export function objectColumns(t: T): Column<Item>[] {
  return [
    { id: 'name', header: t('list.object'), cell: ({ object }) => <ObjectLink object={object} /> },
    {
      id: 'state',
      header: t('objects.state'),
      cell: ({ conditions }) => <StatusPill state={stateOf(conditions)} />,
    },
    { id: 'why', header: t('objects.why'), cell: ({ conditions }) => <Why conditions={conditions} /> },
    {
      id: 'since',
      header: t('objects.since'),
      drop: 1,
      cell: ({ since }) => (since ? <Time at={since} /> : <span className="dim">–</span>),
    },
    {
      id: 'next',
      header: t('objects.next'),
      drop: 2,
      cell: ({ next_attempt_at: at }) => (at ? <Time at={at} /> : <span className="dim">–</span>),
    },
    { id: 'created', header: t('objects.created'), cell: (item) => <Time at={item.created_at} />, drop: 3 },
  ];
}
