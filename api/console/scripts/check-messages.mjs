// Fails on messages that are missing or not used, and on reasons and settings that differ from those of the service.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const root = fileURLToPath(new URL('../', import.meta.url));
const load = async (path) => (await runnerImport(join(root, path), { configFile: false })).module;
const { en } = await load('src/i18n/en.ts');
const { zh } = await load('src/i18n/zh.ts');
const { MANUAL } = await load('src/modules/reasons.ts');
const problems = [];

const placeholders = (text) =>
  new Set([...text.matchAll(/\{\s*([A-Za-z]\w*)\s*[,}]/g)].map(([, name]) => name));
for (const key of new Set([...Object.keys(en), ...Object.keys(zh)])) {
  if (!(key in en) || !(key in zh)) problems.push(`${key}: missing in ${key in en ? 'zh' : 'en'}`);
  else if ([...placeholders(zh[key])].some((name) => !placeholders(en[key]).has(name))) {
    problems.push(`${key}: the Chinese text has a placeholder that the English one has not`);
  }
}

// The last of several files would win.
for (const lang of ['en', 'zh']) {
  const seen = new Map();
  for (const name of readdirSync(join(root, 'src/i18n', lang))) {
    // Titles by key of a setting, no messages.
    if (name === 'settings.ts') continue;
    for (const [, key] of readFileSync(join(root, 'src/i18n', lang, name), 'utf8').matchAll(
      /^ {2}'([^']+)':/gm,
    )) {
      if (seen.has(key)) problems.push(`${key}: in ${lang}/${seen.get(key)} and ${lang}/${name}`);
      seen.set(key, name);
    }
  }
}

// Keys that are put together from a word of the service.
const MADE = [/^error\./, /^change\./, /^dashboard\.part\./];
const sources = readdirSync(join(root, 'src'), { recursive: true })
  .filter(
    (name) =>
      /\.tsx?$/.test(name) && !/^(i18n\/(en|zh)|generated|samples)\b/.test(name) && !/\.test\./.test(name),
  )
  .map((name) => readFileSync(join(root, 'src', name), 'utf8'))
  .join('\n');
for (const key of Object.keys(en)) {
  if (
    !MADE.some((made) => made.test(key)) &&
    !sources.includes(`'${key}'`) &&
    !sources.includes(`"${key}"`)
  ) {
    problems.push(`${key}: not used`);
  }
}

const rust = readFileSync(join(root, '../../schema/src/condition.rs'), 'utf8');
const served = [...rust.matchAll(/^ {4}(\w+) => (MANUAL|AUTOMATIC),/gm)];
for (const lang of ['en', 'zh']) {
  const { reasons } = await load(`src/i18n/${lang}/reasons.ts`);
  for (const [, name] of served) if (!(name in reasons)) problems.push(`reason ${name}: missing in ${lang}`);
  for (const name of Object.keys(reasons)) {
    if (!served.some(([, known]) => known === name))
      problems.push(`reason ${name}: the service does not have it`);
  }
}
for (const [, name, who] of served) {
  if (MANUAL.has(name) !== (who === 'MANUAL'))
    problems.push(`reason ${name}: MANUAL differs from the service`);
}

const folder = join(root, '../../schema/src/config/keys');
const settingKeys = readdirSync(folder).flatMap((name) =>
  [...readFileSync(join(folder, name), 'utf8').matchAll(/^ {4}\w+: Setting<.+?> = "([^"]+)"/gm)].map(
    ([, key]) => key,
  ),
);
const settingGroups = settingKeys.map((key) => key.split('.')[0]);
if (settingKeys.length === 0) problems.push('settings: no key was found in the service');
for (const lang of ['en', 'zh']) {
  const texts = await load(`src/i18n/${lang}/settings.ts`);
  const check = (what, known, named) => {
    for (const key of new Set(known)) {
      if (!(key in named) || [named[key]].flat().includes(''))
        problems.push(`${what} ${key}: no title or text in ${lang}`);
    }
    for (const key of Object.keys(named)) {
      if (!known.includes(key)) problems.push(`${what} ${key}: in ${lang}, but the service does not have it`);
    }
  };
  check('setting', settingKeys, texts.settings);
  check('group of settings', settingGroups, texts.settingGroups);
}

for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);
