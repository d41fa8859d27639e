import type { Schemas } from '../../api/types';
import { Actor } from '../../components/Actor';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import type { T } from '../../i18n';

/** Columns of the audit trail. */
export function auditColumns(t: T): Column<Schemas['AuditEntry']>[] {
  return [
    { id: 'time', header: t('list.time'), cell: ({ at }) => <Time at={at} as="exact" /> },
    { id: 'actor', header: t('audit.actor'), short: true, cell: ({ actor }) => <Actor name={actor} /> },
    { id: 'action', header: t('audit.action'), short: true, cell: ({ action }) => <code>{action}</code> },
    {
      id: 'object',
      header: t('list.object'),
      drop: 2,
      cell: ({ object }) => object?.split(',').join(', '),
    },
    { id: 'outcome', header: t('audit.outcome'), drop: 1, short: true, cell: ({ outcome }) => outcome },
    {
      id: 'detail',
      header: t('audit.detail'),
      drop: 3,
      cell: ({ detail }) => <span lang="en">{detail}</span>,
    },
    {
      id: 'address',
      header: t('user.sessions.address'),
      drop: 3,
      short: true,
      cell: ({ address }) => address,
    },
  ];
}
