import { Link } from '@tanstack/react-router';

import type { Schemas } from '../../api/types';
import { Actor } from '../../components/Actor';
import { TonePill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import type { MessageKey } from '../../i18n';
import type { Tone } from '../../modules/state';
import { TASK_TYPES } from '../../modules/task-texts';
import { listing } from './listing';

const stateOfTask = (task: Schemas['Task']): [Tone, MessageKey] => {
  if (task.pending + task.running > 0 && !task.finished_at) return ['wait', 'task.now'];
  if (task.failed > 0) return ['bad', 'task.failed'];
  return task.cancelled > 0 ? ['off', 'task.cancelled'] : ['ok', 'task.done'];
};

export const tasks = listing<Schemas['Tasks'], Schemas['Task']>({
  title: 'section.tasks',
  path: '/api/admin/tasks',
  rows: (answer) => answer.tasks,
  rowId: ({ id }) => id,
  columns: (t) => [
    {
      id: 'what',
      header: t('rollout.what'),
      cell: ({ id, type }) => (
        <Link to="/admin/tasks/$id" params={{ id }}>
          {type in TASK_TYPES ? t(TASK_TYPES[type] ?? 'task.title') : type}
        </Link>
      ),
    },
    {
      id: 'state',
      header: t('objects.state'),
      cell: (task) => {
        const [tone, label] = stateOfTask(task);
        return <TonePill tone={tone}>{t(label)}</TonePill>;
      },
    },
    {
      id: 'progress',
      header: t('rollout.users'),
      numeric: true,
      cell: ({ done, total }) => t('rollout.progress', { done, total }),
    },
    { id: 'failed', header: t('objects.failed'), numeric: true, drop: 1, cell: ({ failed }) => failed },
    {
      id: 'actor',
      header: t('audit.actor'),
      drop: 2,
      short: true,
      cell: ({ actor }) => <Actor name={actor} />,
    },
    {
      id: 'started',
      header: t('objects.started'),
      drop: 2,
      cell: ({ started_at: at }) => (at ? <Time at={at} /> : '–'),
    },
  ],
  none: 'objects.none.tasks',
  commands: ['agentyard get tasks', 'agentyard rollout cancel ID'],
});

export const archives = listing<{ observed?: Schemas['ObservedArchive'] | null }, Schemas['Archive']>({
  title: 'section.archives',
  path: '/api/admin/reconcile/objects/archive/local',
  isWhole: true,
  rows: ({ observed }) => observed?.oldest ?? [],
  rowId: ({ directory }) => directory,
  columns: (t) => [
    { id: 'user', header: t('objects.user'), cell: ({ user }) => user },
    {
      id: 'state',
      header: t('objects.state'),
      cell: ({ removing }) =>
        removing ? (
          <TonePill tone="wait">{t('state.deleting')}</TonePill>
        ) : (
          <TonePill tone="ok">{t('objects.kept')}</TonePill>
        ),
    },
    { id: 'at', header: t('objects.archived'), cell: (row) => <Time at={row.archived_at} as="exact" /> },
    { id: 'name', header: t('objects.folder'), drop: 1, cell: ({ directory }) => <code>{directory}</code> },
  ],
  none: 'objects.none.archives',
  commands: [
    'agentyard archive list',
    'agentyard archive show USER@TIME',
    'agentyard archive restore USER@TIME --to USER',
    'agentyard archive delete USER@TIME',
  ],
});
