import { Link } from '@tanstack/react-router';

import type { Schemas } from '../../api/types';
import { Time } from '../../components/Time';
import { ObjectLink } from '../../modules/objects/ObjectLink';
import { SOURCES } from '../../modules/source-texts';
import { DisconnectButton } from '../../modules/users/DisconnectButton';
import { executorLabel } from '../../modules/users/executor-label';
import { visibleText } from '../../modules/visible-text';
import { listing } from './listing';

export const groups = listing<Schemas['Groups'], Schemas['Group']>({
  title: 'section.groups',
  path: '/api/admin/groups',
  rows: (answer) => answer.groups,
  rowId: ({ id }) => id,
  columns: (t) => [
    {
      id: 'name',
      header: t('objects.name'),
      cell: ({ name, description }) => (
        <>
          <Link to="/admin/groups/$name" params={{ name }}>
            {visibleText(name)}
          </Link>
          {description !== '' && <small> {visibleText(description)}</small>}
        </>
      ),
    },
    {
      id: 'parent',
      header: t('objects.parent'),
      drop: 1,
      cell: ({ parent }) =>
        parent ? <ObjectLink object={`group/${parent}`}>{visibleText(parent)}</ObjectLink> : '–',
    },
    {
      id: 'members',
      header: t('objects.members'),
      numeric: true,
      cell: ({ name, member_count: count }) =>
        count > 0 ? (
          <Link to="/admin/users" search={{ group: name }}>
            {count}
          </Link>
        ) : (
          count
        ),
    },
    { id: 'skills', header: t('section.skills'), numeric: true, cell: (group) => group.skill_count },
    { id: 'source', header: t('users.source'), drop: 2, cell: ({ source }) => t(SOURCES[source]) },
    { id: 'created', header: t('objects.created'), drop: 3, cell: (group) => <Time at={group.created_at} /> },
  ],
  search: 'table.search',
  none: 'objects.none.groups',
  commands: [
    'agentyard group create GROUP',
    'agentyard group add GROUP USER',
    'agentyard group members GROUP',
    'agentyard group delete GROUP',
  ],
});

export const executors = listing<Schemas['Executors'], Schemas['Executor']>({
  title: 'section.executors',
  path: '/api/admin/executors',
  rows: (answer) => answer.executors,
  rowId: ({ id }) => String(id),
  columns: (t) => [
    {
      id: 'user',
      header: t('objects.user'),
      cell: ({ username: name }) => (
        <Link to="/admin/users/$name/executors" params={{ name }}>
          {name}
        </Link>
      ),
    },
    {
      id: 'what',
      header: t('executors.what'),
      cell: ({ service }) => t(service === 'browser' ? 'executors.browser' : 'executors.desktop'),
    },
    {
      id: 'client',
      header: t('executors.client'),
      drop: 1,
      cell: (executor) => (
        <>
          {executorLabel(executor)}{' '}
          <small>
            {[executor.version, executor.platform]
              .filter(Boolean)
              .map((one) => visibleText(one ?? ''))
              .join(' · ')}
          </small>
        </>
      ),
    },
    { id: 'address', header: t('user.sessions.address'), drop: 2, cell: ({ address }) => address ?? '–' },
    { id: 'since', header: t('executors.since'), cell: ({ connected_at: at }) => <Time at={at} /> },
    { id: 'calls', header: t('executors.calls'), numeric: true, drop: 2, cell: ({ calls }) => calls },
    {
      id: 'late',
      header: t('executors.late'),
      numeric: true,
      drop: 3,
      cell: ({ late_answers: late }) => late,
    },
    { id: 'id', header: t('object.id'), numeric: true, drop: 3, cell: ({ id }) => <code>{id}</code> },
    {
      id: 'actions',
      header: t('files.actions'),
      hidesHeader: true,
      numeric: true,
      cell: (executor) => <DisconnectButton executor={executor} />,
    },
  ],
  search: 'executors.search',
  none: 'objects.none.executors',
  commandsTitle: 'terminal.title',
  commands: ['agentyard get executors', 'agentyard executor disconnect ID'],
});
