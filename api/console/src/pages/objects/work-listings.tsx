import { Link } from '@tanstack/react-router';

import { type ArchiveItem, type Archives, readArchives } from '../../api/queries/archives';
import type { Schemas } from '../../api/types';
import { Actor } from '../../components/Actor';
import { Bytes } from '../../components/Bytes';
import { TonePill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import type { MessageKey } from '../../i18n';
import type { Tone } from '../../modules/state';
import { TASK_TYPES } from '../../modules/task-texts';
import { visibleText } from '../../modules/visible-text';
import { FilterLink } from './FilterLink';
import { listing } from './listing';
import { TaskObject } from './TaskObject';

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
      id: 'object',
      header: t('list.object'),
      drop: 2,
      cell: (task) => <TaskObject task={task} />,
    },
    {
      id: 'actor',
      header: t('audit.actor'),
      drop: 2,
      short: true,
      cell: ({ actor }) => (
        <FilterLink to="/admin/audit" filter={{ actor }}>
          <Actor name={actor} />
        </FilterLink>
      ),
    },
    {
      id: 'started',
      header: t('objects.started'),
      drop: 2,
      cell: ({ started_at: at }) => (at ? <Time at={at} /> : '–'),
    },
    {
      id: 'finished',
      header: t('tasks.ended'),
      drop: 3,
      cell: ({ finished_at: at }) => (at ? <Time at={at} /> : '–'),
    },
  ],
  hasNoSearch: true,
  none: 'objects.none.tasks',
  commandsTitle: 'terminal.title',
  commands: ['agentyard get tasks', 'agentyard rollout cancel ID'],
});

export const archives = listing<Archives, ArchiveItem>({
  title: 'section.archives',
  path: '/api/admin/archives',
  read: readArchives,
  search: 'archives.search',
  rows: ({ items }) => items,
  rowId: ({ name }) => name,
  columns: (t) => [
    {
      id: 'user',
      header: t('objects.user'),
      cell: ({ username }) => (
        <Link to="/admin/audit" search={{ user: username } as never}>
          {username}
        </Link>
      ),
    },
    {
      id: 'state',
      header: t('objects.state'),
      cell: ({ state }) => {
        const removing = state === 'removing';
        return (
          <TonePill tone={removing ? 'wait' : 'ok'}>
            {t(removing ? 'state.deleting' : 'objects.kept')}
          </TonePill>
        );
      },
    },
    { id: 'at', header: t('objects.archived'), cell: (row) => <Time at={row.archived_at} as="exact" /> },
    {
      id: 'size',
      header: t('objects.size'),
      numeric: true,
      drop: 2,
      cell: ({ size }) => (size === null ? <span className="dim">–</span> : <Bytes value={size} />),
    },
    {
      id: 'expires',
      header: t('archives.expires'),
      drop: 1,
      cell: ({ expires_at: at }) => (at === null ? t('archives.until.deleted') : <Time at={at} />),
    },
    {
      id: 'name',
      header: t('objects.folder'),
      drop: 2,
      cell: ({ name }) => <code>{visibleText(name)}</code>,
    },
  ],
  none: 'objects.none.archives',
  commands: [
    'agentyard archive list',
    'agentyard archive show USER@TIME',
    'agentyard archive restore USER@TIME --to USER',
    'agentyard archive delete USER@TIME',
  ],
});
