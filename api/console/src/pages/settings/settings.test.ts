import { expect, test } from 'vitest';

import { settingGroups, settings } from '../../i18n/zh/settings';
import { readSettings, settingCommand, type SettingKey } from '../../modules/settings';
import { filterSettings, nameSettings } from './filter-settings';

const SCHEMA = {
  properties: {
    agent: { title: 'Agent configuration', type: 'object', default: {} },
    container: {
      properties: {
        capabilities: { title: 'Capabilities', type: 'array', default: [] },
        memory_limit_mb: { title: 'Memory limit (MiB)', type: 'integer', default: 1024 },
      },
    },
    image: { properties: { registry_password: { title: 'Registry password', secret: true, default: '' } } },
    newer: { properties: { key: { title: 'Newer setting', type: 'string', default: '' } } },
  },
};
const DOCUMENT = {
  agent: {},
  container: {
    capabilities: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'],
    memory_limit_mb: 2048,
  },
  image: { registry_password: '********' },
  newer: { key: '' },
};
const NAMES = {
  all: [],
  find: (key: string) => (key in settings ? settings[key as SettingKey] : undefined),
  group: (group: string) => settingGroups[group as keyof typeof settingGroups],
};

test('changed settings differ from their defaults', () => {
  const changed = readSettings(SCHEMA, DOCUMENT).filter(({ isDefault }) => !isDefault);
  expect(changed.map(({ key }) => key)).toEqual(['container.memory_limit_mb', 'image.registry_password']);
});

test('commands fit the type of the setting', () => {
  expect(readSettings(SCHEMA, DOCUMENT).map(settingCommand)).toEqual([
    'agentyard config set agent=- < agent.json',
    `agentyard config set container.capabilities='["VALUE"]'`,
    'agentyard config set container.memory_limit_mb=VALUE',
    'agentyard config set image.registry_password=-',
    'agentyard config set newer.key=VALUE',
  ]);
});

test('settings are found by title, text and key in their groups', () => {
  const shown = nameSettings(readSettings(SCHEMA, DOCUMENT), NAMES);
  const keys = (words: string, changedOnly = false): string[] =>
    filterSettings(shown, words, changedOnly).flatMap((found) => found.settings.map(({ key }) => key));
  expect(keys('内存')).toEqual(['container.memory_limit_mb']);
  expect(keys('Registry_')).toEqual(['image.registry_password']);
  expect(keys('container', true)).toEqual(['container.memory_limit_mb']);
  expect(filterSettings(shown, '', false).map(({ group }) => group)).toEqual([
    'agent',
    'container',
    'image',
    'newer',
  ]);
  expect(shown.at(-1)).toMatchObject({ title: 'Newer setting', isForeign: true });
});
