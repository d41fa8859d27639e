import type { Schemas } from '../../api/types';
import { OBJECT_KINDS } from '../../modules/objects/object-name';
import { plainWord } from '../../modules/plain-word';
import { switchFilter } from './list-filters';
import { listing } from './listing';
import { objectColumns } from './object-columns';

export const objects = listing<Schemas['Objects'], Schemas['ObjectHeader']>({
  title: 'reconcile.all',
  parent: { to: '/admin/reconcile', title: 'section.reconcile' },
  path: '/api/admin/reconcile/objects',
  filterNames: ['not_ready', 'reconciler'],
  filters: ({ t }) => [
    switchFilter('not_ready', t('objects.not.ready')),
    {
      name: 'reconciler',
      label: t('object.kind'),
      options: OBJECT_KINDS.map((value) => ({ value, text: value })),
    },
  ],
  search: 'table.search',
  rows: (answer) => answer.objects,
  rowId: ({ object, uid }) => `${object} ${uid}`,
  columns: objectColumns,
  none: 'objects.none.objects',
  commandsTitle: 'terminal.title',
  commands: ({ search, filters }) => {
    const words = search === '' ? '' : ` --search ${plainWord(search)}`;
    const notReady = filters.not_ready === undefined ? '' : ' --not-ready';
    return [
      `agentyard get ${filters.reconciler?.[0] ?? 'objects'}${words}${notReady}`,
      'agentyard describe KIND/NAME',
    ];
  },
});
