import type { Schemas } from '../../api/types';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import type { T } from '../../i18n';

/** Columns of events. */
export function eventColumns(t: T): Column<Schemas['ExplainedEvent']>[] {
  return [
    {
      id: 'time',
      header: t('list.time'),
      cell: ({ last_at: at, count }) => (
        <>
          <Time at={at} as="exact" />
          {count > 1 && <small> {t('events.times', { count })}</small>}
        </>
      ),
    },
    { id: 'object', header: t('list.object'), drop: 2, short: true, cell: ({ object }) => object },
    {
      id: 'reason',
      header: t('users.reason'),
      drop: 1,
      short: true,
      cell: ({ reason }) => <code>{reason}</code>,
    },
    {
      id: 'message',
      header: t('events.message'),
      cell: ({ message, remedy, reason }) => (
        <span lang="en">
          {message}
          {remedy !== '' && reason !== 'Progressing' && <small> {remedy}</small>}
        </span>
      ),
    },
  ];
}
