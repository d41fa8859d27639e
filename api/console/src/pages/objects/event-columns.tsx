import type { Schemas } from '../../api/types';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import type { T } from '../../i18n';
import { ObjectLink } from '../../modules/objects/ObjectLink';
import { visibleText } from '../../modules/visible-text';
import { FilterLink } from './FilterLink';

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
    { id: 'object', header: t('list.object'), cell: ({ object }) => <ObjectLink object={object} /> },
    {
      id: 'reason',
      header: t('users.reason'),
      drop: 1,
      short: true,
      cell: ({ reason }) => (
        <FilterLink to="/admin/events" filter={{ reason }}>
          <code>{reason}</code>
        </FilterLink>
      ),
    },
    {
      id: 'message',
      header: t('events.message'),
      cell: ({ message, remedy, reason }) => (
        <span lang="en">
          {visibleText(message)}
          {remedy !== '' && reason !== 'Progressing' && <small> {remedy}</small>}
        </span>
      ),
    },
  ];
}
