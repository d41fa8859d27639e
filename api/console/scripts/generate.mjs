// Writes src/generated/: types of the API from the API document, types of the chat's frames from their JSON Schema, and
// theme.css from src/theme.ts and src/styles/base.css.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapi, { astToString } from 'openapi-typescript';
import { runnerImport } from 'vite';

const root = new URL('../', import.meta.url);
const out = new URL('src/generated/', root);
mkdirSync(out, { recursive: true });

const write = (name, text) => {
  const file = new URL(name, out);
  let old = '';
  try {
    old = readFileSync(file, 'utf8');
  } catch {
    // The file does not exist yet.
  }
  if (old !== text) writeFileSync(file, text);
};

const types = await openapi(new URL('../src/openapi/snapshots/openapi.snap.json', root), { silent: true });
write('schema.d.ts', astToString(types));

// A JSON Schema is read as the schemas of an API document without paths.
const frames = JSON.parse(
  readFileSync(
    new URL('../src/chat/snapshots/api__chat__schema_document__tests__chat_schema.snap.json', root),
    'utf8',
  ),
  (key, value) => (key === '$ref' ? value.replace(/^#\/\$defs\//, '#/components/schemas/') : value),
);
const framesDocument = {
  openapi: '3.1.0',
  info: { title: frames.title, version: '1' },
  paths: {},
  components: { schemas: frames.$defs },
};
write('chat.d.ts', astToString(await openapi(framesDocument, { silent: true })));

const { module } = await runnerImport(fileURLToPath(new URL('src/theme-css.ts', root)), {
  configFile: false,
});
// One file for all pages, those of failed sign-ins too.
const base = readFileSync(new URL('src/styles/base.css', root), 'utf8');
write('theme.css', module.themeCss() + base);
