import { Link } from '@tanstack/react-router';

import type { Schemas } from '../../api/types';
import { StatusPill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import { stateOf } from '../../modules/state';
import { ObjectLink } from '../../modules/objects/ObjectLink';
import { visibleText } from '../../modules/visible-text';
import { listing } from './listing';
import { objectColumns } from './object-columns';
import { Why } from './Why';

const OBJECTS = '/api/admin/reconcile/objects';

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

export const skills = listing<Schemas['Skills'], Schemas['Skill']>({
  title: 'section.skills',
  path: '/api/admin/skills',
  kind: 'skill',
  rows: (answer) => answer.skills,
  rowId: ({ name }) => name,
  columns: (t) => [
    {
      id: 'name',
      header: t('objects.name'),
      cell: ({ name }) => (
        <Link to="/admin/skills/$name" params={{ name }}>
          {visibleText(name)}
        </Link>
      ),
    },
    {
      id: 'state',
      header: t('objects.state'),
      cell: ({ conditions }) => <StatusPill state={stateOf(conditions)} />,
    },
    {
      id: 'description',
      header: t('objects.description'),
      cell: ({ conditions, description }) =>
        stateOf(conditions).tone === 'ok' ? visibleText(description) : <Why conditions={conditions} />,
    },
    { id: 'number', header: t('objects.version'), numeric: true, drop: 2, cell: ({ number }) => number },
    {
      id: 'groups',
      header: t('users.groups'),
      drop: 1,
      cell: (skill) =>
        skill.bound_to_everyone
          ? t('objects.everyone')
          : skill.bound_groups.length === 0
            ? '–'
            : skill.bound_groups.map((name) => (
                <div key={name}>
                  <ObjectLink object={`group/${name}`}>{visibleText(name)}</ObjectLink>
                </div>
              )),
    },
    {
      id: 'source',
      header: t('skill.source'),
      drop: 2,
      cell: ({ source }) =>
        source === 'upload' ? (
          t('skill.upload')
        ) : (
          <ObjectLink object={`skill-repository/${source}`}>{visibleText(source)}</ObjectLink>
        ),
    },
    { id: 'users', header: t('section.users'), numeric: true, cell: (skill) => skill.user_count },
    {
      id: 'changed',
      header: t('objects.changed'),
      drop: 3,
      cell: (skill) => <Time at={skill.modified_at} />,
    },
  ],
  search: 'table.search',
  none: 'objects.none.skills',
  commands: [
    'agentyard skill list',
    'agentyard skill upload FOLDER',
    'agentyard skill bind SKILL --group GROUP',
    'agentyard skill rollback SKILL',
  ],
});
