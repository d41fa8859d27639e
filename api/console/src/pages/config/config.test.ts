import { expect, test } from 'vitest';

import { Failure } from '../../api/failure';
import type { Revision } from '../../api/queries/config';
import { settingGroups, settings as texts } from '../../i18n/zh/settings';
import { MASK, readSettings, type Setting, type SettingKey } from '../../modules/settings';
import { valuesBefore } from './changed-values';
import { pendingCommands } from './commands';
import { filterSettings, nameSettings } from './filter-settings';
import { isSecretLeaf, leafChanges } from './leaf-changes';
import { meanwhileChanges } from './meanwhile';
import { collectPending, type ConfigDraft, EMPTY_DRAFT, valuesOf } from './pending';
import { readRefusals } from './refusals';
import { revisionOf, splitMessage } from './rollout-words';
import { sectionsOf } from './sections';
import { groupSkillChanges } from './skill-changes';

const SCHEMA = {
  properties: {
    agent: { title: 'Agent configuration', type: 'object', default: {} },
    container: {
      properties: {
        autostart: { title: 'Start new containers', type: 'boolean', default: true },
        capabilities: { title: 'Capabilities', type: 'array', default: [] },
        memory_limit_mb: { title: 'Memory limit (MiB)', type: 'integer', default: 1024 },
      },
    },
    image: {
      properties: {
        registry_password: { title: 'Registry password', type: 'string', secret: true, default: '' },
        tag: { title: 'Image tag', type: 'string', default: 'latest' },
      },
    },
    newer: { properties: { key: { title: 'Newer setting', type: 'string', default: '' } } },
  },
};
const DOCUMENT = {
  agent: { models: [{ name: 'a', api_key: MASK }] },
  container: {
    autostart: true,
    capabilities: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'],
    memory_limit_mb: 2048,
  },
  image: { registry_password: MASK, tag: '1' },
  newer: { key: '' },
};
const SETTINGS = readSettings(SCHEMA, DOCUMENT);
const NAMES = {
  all: [],
  find: (key: string) => (key in texts ? texts[key as SettingKey] : undefined),
  group: (group: string) => settingGroups[group as keyof typeof settingGroups],
};
const draft = (entries: ConfigDraft['entries'], secrets: ConfigDraft['secrets'] = {}): ConfigDraft => ({
  ...EMPTY_DRAFT,
  entries,
  secrets,
});
const sent = (entries: ConfigDraft['entries'], secrets?: ConfigDraft['secrets']): Record<string, unknown> =>
  valuesOf(collectPending(SETTINGS, draft(entries, secrets)).changes);
const commands = (entries: ConfigDraft['entries'], secrets?: ConfigDraft['secrets']): string[] =>
  pendingCommands(collectPending(SETTINGS, draft(entries, secrets)).changes);

test('changed settings differ from their defaults', () => {
  const changed = SETTINGS.filter(({ isDefault }) => !isDefault);
  expect(changed.map(({ key }) => key)).toEqual([
    'agent',
    'container.memory_limit_mb',
    'image.registry_password',
    'image.tag',
  ]);
});

test('settings are found by words of both languages and by key', () => {
  const shown = nameSettings(SETTINGS, NAMES);
  const sections = sectionsOf(shown.map(({ group }) => group));
  const keys = (words: string, changedOnly = false): string[] =>
    filterSettings(shown, sections, words, changedOnly).flatMap((found) =>
      found.settings.map(({ key }) => key),
    );
  expect(keys('内存')).toEqual(['container.memory_limit_mb']);
  expect(keys('memory limit')).toEqual(['container.memory_limit_mb']);
  expect(keys('Registry_')).toEqual(['image.registry_password']);
  expect(keys('container.', true)).toEqual(['container.memory_limit_mb']);
  expect(sections.map(({ id }) => id)).toEqual(['container', 'image', 'agent', 'newer']);
  expect(shown.at(-1)).toMatchObject({ title: 'Newer setting', isForeign: true });
});

test('only changed values are sent', () => {
  expect(sent({})).toEqual({});
  expect(sent({ 'image.tag': '1', 'container.memory_limit_mb': '2048.' })).toEqual({});
  expect(sent({ 'image.tag': ' 2 ', 'container.autostart': false })).toEqual({
    'container.autostart': false,
    'image.tag': '2',
  });
  expect(sent({ 'image.tag': null, 'newer.key': null })).toEqual({ 'image.tag': null });
  expect(sent({ 'container.memory_limit_mb': '' })).toEqual({ 'container.memory_limit_mb': null });
  expect(sent({ 'container.capabilities': 'CHOWN\n\n KILL ' })).toEqual({
    'container.capabilities': ['CHOWN', 'KILL'],
  });
});

test('untouched secrets are absent, others are replaced or removed', () => {
  expect(sent({}, { 'image.registry_password': { replace: '' } })).toEqual({});
  expect(sent({}, { 'image.registry_password': { replace: 'hunter2' } })).toEqual({
    'image.registry_password': 'hunter2',
  });
  expect(sent({}, { 'image.registry_password': 'remove' })).toEqual({ 'image.registry_password': null });
});

test('unreadable entry is a problem of its field', () => {
  const entries = { agent: '[1]', 'container.memory_limit_mb': 'much', 'image.tag': '2' };
  const pending = collectPending(SETTINGS, draft(entries));
  expect(pending.problems).toEqual({
    agent: { key: 'config.json.object' },
    'container.memory_limit_mb': { key: 'form.number.bad' },
  });
  expect(pending.keys).toEqual(['agent', 'container.memory_limit_mb', 'image.tag']);
});

test('commands save the same without secrets', () => {
  expect(
    commands(
      {
        agent: '{"a":1}',
        'container.capabilities': 'CHOWN\nKILL',
        'container.memory_limit_mb': '512',
        'image.tag': `it's`,
      },
      { 'image.registry_password': { replace: 'hunter2' } },
    ),
  ).toEqual([
    `agentyard config set 'container.capabilities=["CHOWN","KILL"]' container.memory_limit_mb=512 image.registry_password=- 'image.tag=it'\\''s'`,
    'agentyard config set agent=- < agent.json',
  ]);
  expect(commands({ 'image.tag': null }, { 'image.registry_password': 'remove' })).toEqual([
    'agentyard config unset image.registry_password image.tag',
  ]);
});

test('documents differ in leaves', () => {
  const before = { models: [{ name: 'a', api_key: MASK }], gone: {}, same: [1, 2] };
  const after = { models: [{ name: 'b', api_key: 'sk-1' }, { name: 'c' }], same: [1, 2], 'a/b': {} };
  const changes = leafChanges(before, after);
  expect(changes).toEqual([
    { path: '/models/0/name', before: 'a', after: 'b' },
    { path: '/models/0/api_key', before: MASK, after: 'sk-1' },
    { path: '/models/1/name', before: undefined, after: 'c' },
    { path: '/gone', before: {}, after: undefined },
    { path: '/a~1b', before: undefined, after: {} },
  ]);
  expect(changes.filter(isSecretLeaf).map(({ path }) => path)).toEqual(['/models/0/api_key']);
  expect(leafChanges({}, { a: 1 })).toEqual([{ path: '/a', before: undefined, after: 1 }]);
  expect(leafChanges({ a: [] }, { a: {} })).toEqual([{ path: '/a', before: [], after: {} }]);
});

test('a space at the end is no change', () => {
  const setting = SETTINGS.find(({ key }) => key === 'image.tag') as Setting;
  expect(collectPending([setting], draft({ 'image.tag': '1 ' })).keys).toEqual([]);
});

const save = (revision: number, actor: string, key: string, old: unknown, next: unknown): Revision => ({
  revision,
  actor,
  at: '2026-01-01T00:00:00Z',
  changes: [{ key, old, new: next }],
});

test('values before several saves are those of the earliest', () => {
  const saves = [save(5, 'a', 'image.tag', '2', '3'), save(4, 'a', 'image.tag', null, '2')];
  expect(valuesBefore(saves)).toEqual(new Map([['image.tag', null]]));
});

test('saves are summed up by key, unsaved settings first', () => {
  const saves = [
    save(6, 'bob', 'image.tag', '2', '3'),
    save(5, 'ann', 'log.level', null, 'debug'),
    save(4, 'ann', 'image.tag', '1', '2'),
  ];
  expect(meanwhileChanges(saves, ['log.level'])).toEqual([
    { key: 'log.level', actors: ['ann'], before: null, after: 'debug', isMine: true },
    { key: 'image.tag', actors: ['bob', 'ann'], before: '1', after: '3', isMine: false },
  ]);
});

test('refusals stand at their settings without the key', () => {
  const problems = [
    { key: 'image.tag', message: 'image.tag must be a text' },
    { key: 'agent', message: 'agent: /a is unknown' },
    { key: 'nope', message: 'nope is not a configuration key' },
  ];
  const failure = new Failure(422, 'invalid_config', '', undefined, { problems });
  expect(readRefusals(failure, new Set(['image.tag', 'agent']))).toEqual({
    byKey: { 'image.tag': 'Must be a text', agent: '/a is unknown' },
    other: ['nope is not a configuration key'],
  });
});

test('message of a failed user has a reason and a text', () => {
  const message = 'ReplacementFailed: it ended with exit code 3; end of its log: a | b';
  expect(splitMessage(message, true)).toEqual({
    reason: 'ReplacementFailed',
    text: 'it ended with exit code 3',
  });
  expect(splitMessage('gone', true)).toEqual({ reason: '', text: 'gone' });
  expect(revisionOf('configuration 7')).toBe(7);
});

test('users are grouped by what becomes of a skill', () => {
  const change = (username: string, gains: string[], loses: string[]) => ({
    username,
    gains,
    loses,
    changes: [],
  });
  expect(groupSkillChanges([change('ann', ['pdf'], ['mail']), change('bob', ['pdf'], [])])).toEqual([
    { kind: 'gains', skill: 'pdf', users: ['ann', 'bob'] },
    { kind: 'loses', skill: 'mail', users: ['ann'] },
  ]);
});
