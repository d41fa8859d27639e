import { Link } from '@tanstack/react-router';

import type { Schemas } from '../../api/types';
import { Bytes } from '../../components/Bytes';
import { StatusPill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import { stateOf } from '../../modules/state';
import { listing } from './listing';
import { objectColumns } from './object-columns';
import { Why } from './Why';

const OBJECTS = '/api/admin/reconcile/objects';

export const containers = listing<Schemas['Objects'], Schemas['ObjectHeader']>({
  title: 'section.containers',
  path: OBJECTS,
  query: { reconciler: 'container' },
  kind: 'container',
  filtersReady: true,
  rows: ({ objects }) => objects,
  rowId: ({ uid }) => uid,
  columns: objectColumns,
  none: 'objects.none.containers',
  commands: [
    'agentyard get containers',
    'agentyard describe container/USER',
    'agentyard restart container/USER',
  ],
});

export const agent = listing<Schemas['Objects'], Schemas['ObjectHeader']>({
  title: 'section.agent',
  path: OBJECTS,
  query: { reconciler: 'adapter' },
  kind: 'adapter',
  rows: ({ objects }) => objects,
  rowId: ({ uid }) => uid,
  columns: objectColumns,
  none: 'objects.none.agent',
  commands: [
    'agentyard model set PROVIDER --model MODEL',
    'agentyard model try',
    'agentyard adapter show',
    'agentyard adapter upload ZIP',
    'agentyard adapter refresh',
    'agentyard adapter rollback',
  ],
});

export const images = listing<Schemas['Images'], Schemas['ImageItem']>({
  title: 'section.images',
  path: '/api/admin/images',
  rows: (answer) => answer.images,
  rowId: ({ full_id: id }) => id,
  columns: (t) => [
    {
      id: 'name',
      header: t('objects.name'),
      cell: ({ repo_tags: tags, id }) => (tags.length > 0 ? tags.join(', ') : <code>{id}</code>),
    },
    {
      id: 'users',
      header: t('section.users'),
      numeric: true,
      cell: ({ user_count: count, repo_tags: [tag] }) =>
        count > 0 && tag !== undefined ? (
          <Link to="/admin/users" search={{ image: tag }}>
            {count}
          </Link>
        ) : (
          count
        ),
    },
    {
      id: 'size',
      header: t('objects.size'),
      numeric: true,
      drop: 1,
      cell: ({ size }) => <Bytes value={size} />,
    },
    { id: 'created', header: t('objects.created'), drop: 2, cell: ({ created }) => <Time at={created} /> },
  ],
  none: 'objects.none.images',
  commands: [
    'agentyard image list',
    'agentyard image pull IMAGE',
    'agentyard image delete IMAGE',
    'agentyard rollout start IMAGE --all',
  ],
});

export const skills = listing<Schemas['Skills'], Schemas['Skill']>({
  title: 'section.skills',
  path: '/api/admin/skills',
  kind: 'skill',
  rows: (answer) => answer.skills,
  rowId: ({ name }) => name,
  columns: (t) => [
    { id: 'name', header: t('objects.name'), cell: ({ name }) => name },
    {
      id: 'state',
      header: t('objects.state'),
      cell: ({ conditions }) => <StatusPill state={stateOf(conditions)} />,
    },
    {
      id: 'description',
      header: t('objects.description'),
      cell: ({ conditions, description }) =>
        stateOf(conditions).tone === 'ok' ? description : <Why conditions={conditions} />,
    },
    { id: 'number', header: t('objects.version'), numeric: true, drop: 2, cell: ({ number }) => number },
    {
      id: 'groups',
      header: t('users.groups'),
      drop: 1,
      cell: (skill) =>
        skill.bound_to_everyone ? t('objects.everyone') : skill.bound_groups.join(', ') || '–',
    },
    { id: 'users', header: t('section.users'), numeric: true, cell: (skill) => skill.user_count },
    {
      id: 'changed',
      header: t('objects.changed'),
      drop: 3,
      cell: (skill) => <Time at={skill.modified_at} />,
    },
  ],
  none: 'objects.none.skills',
  commands: [
    'agentyard skill list',
    'agentyard skill upload FOLDER',
    'agentyard skill bind SKILL --group GROUP',
    'agentyard skill rollback SKILL',
  ],
});
