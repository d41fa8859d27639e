import { Link } from '@tanstack/react-router';

import type { Schemas } from '../../api/types';
import { Time } from '../../components/Time';
import { listing } from './listing';

const SOURCES = {
  local: 'users.source.local',
  ldap: 'users.source.ldap',
  oidc: 'users.source.oidc',
} as const;

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
          <Link to="/admin/users" search={{ group: name }}>
            {name}
          </Link>
          {description !== '' && <small> {description}</small>}
        </>
      ),
    },
    { id: 'parent', header: t('objects.parent'), drop: 1, cell: ({ parent }) => parent ?? '–' },
    { id: 'members', header: t('objects.members'), numeric: true, cell: (group) => group.member_count },
    { id: 'skills', header: t('section.skills'), numeric: true, cell: (group) => group.skill_count },
    { id: 'source', header: t('users.source'), drop: 2, cell: ({ source }) => t(SOURCES[source]) },
    { id: 'created', header: t('objects.created'), drop: 3, cell: (group) => <Time at={group.created_at} /> },
  ],
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
      drop: 2,
      cell: ({ label, client, version, platform }) =>
        [label ?? client, version, platform].filter(Boolean).join(' · ') || '–',
    },
    { id: 'since', header: t('executors.since'), cell: ({ connected_at: at }) => <Time at={at} /> },
    { id: 'calls', header: t('executors.calls'), numeric: true, drop: 1, cell: ({ calls }) => calls },
  ],
  none: 'objects.none.executors',
  commands: ['agentyard get executors', 'agentyard executor disconnect ID'],
});
