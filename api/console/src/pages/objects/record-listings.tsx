import type { Schemas } from '../../api/types';
import { actorText } from '../../modules/actor';
import { OBJECT_KINDS } from '../../modules/objects/object-name';
import { plainWord } from '../../modules/plain-word';
import { visibleText } from '../../modules/visible-text';
import { auditColumns } from './audit-columns';
import { eventColumns } from './event-columns';
import { ageFilter, linkedFilter, withTime } from './list-filters';
import { listing } from './listing';

/** The kind of events of the service itself. */
const SERVICE = 'service';

export const events = listing<Schemas['EventList'], Schemas['ExplainedEvent']>({
  title: 'section.events',
  path: '/api/admin/events',
  filterNames: ['kind', 'reason', 'since', 'object', 'user'],
  filters: (context) => [
    {
      name: 'kind',
      label: context.t('object.kind'),
      options: [...OBJECT_KINDS, SERVICE].map((value) => ({ value, text: value })),
    },
    { name: 'reason', label: context.t('users.reason'), options: context.reasons },
    ageFilter(context),
    ...linkedFilter(context, 'object', (value) => context.t('filter.object', { value: visibleText(value) })),
    ...linkedFilter(context, 'user', (value) => context.t('filter.user', { value: visibleText(value) })),
  ],
  // The API takes a kind only where no object is named.
  prepare: ({ kind, ...query }) => withTime(query.object === undefined ? { ...query, kind } : query),
  search: 'events.search',
  rows: (answer) => answer.events,
  rowId: ({ id }) => String(id),
  columns: eventColumns,
  none: 'events.none.text',
  commandsTitle: 'terminal.title',
  commands: ({ filters }) => {
    const object = filters.object?.[0];
    const since = filters.since?.[0];
    const age =
      since !== undefined && /^\d+[mhd]$/.test(since) ? ` --since ${since.replace('7d', '168h')}` : '';
    return [
      `agentyard events${object === undefined ? '' : ` --object ${plainWord(object)}`}${age}`,
      'agentyard events --watch',
    ];
  },
});

export const audit = listing<Schemas['AuditEntries'], Schemas['AuditEntry']>({
  title: 'section.audit',
  path: '/api/admin/audit',
  filterNames: ['since', 'actor', 'action', 'object', 'user'],
  filters: (context) => [
    ageFilter(context),
    ...linkedFilter(context, 'actor', (value) =>
      context.t('filter.actor', { value: visibleText(actorText(value, context.t)) }),
    ),
    ...linkedFilter(context, 'action', (value) => context.t('filter.action', { value: visibleText(value) })),
    ...linkedFilter(context, 'object', (value) => context.t('filter.object', { value: visibleText(value) })),
    ...linkedFilter(context, 'user', (value) => context.t('filter.user', { value: visibleText(value) })),
  ],
  prepare: withTime,
  search: 'audit.search',
  rows: (answer) => answer.entries,
  rowId: ({ seq }) => String(seq),
  columns: auditColumns,
  none: 'audit.none.text',
  commandsTitle: 'terminal.title',
  commands: ({ search }) => [
    `agentyard audit list${search === '' ? '' : ` --search ${plainWord(search)}`}`,
    'agentyard audit verify',
    'agentyard audit export > audit.jsonl',
  ],
});
