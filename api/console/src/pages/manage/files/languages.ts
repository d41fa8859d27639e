import { StreamLanguage } from '@codemirror/language';
import type { Extension } from '@codemirror/state';

import { extensionOf } from './paths';

type Load = () => Promise<Extension>;

const javascript =
  (config: { jsx?: boolean; typescript?: boolean }): Load =>
  async () =>
    (await import('@codemirror/lang-javascript')).javascript(config);
const python: Load = async () => (await import('@codemirror/lang-python')).python();
const markdown: Load = async () => (await import('@codemirror/lang-markdown')).markdown();
const json: Load = async () => (await import('@codemirror/lang-json')).json();
const yaml: Load = async () => (await import('@codemirror/lang-yaml')).yaml();
const html: Load = async () => (await import('@codemirror/lang-html')).html();
const css: Load = async () => (await import('@codemirror/lang-css')).css();
const shell: Load = async () =>
  StreamLanguage.define((await import('@codemirror/legacy-modes/mode/shell')).shell);
const toml: Load = async () =>
  StreamLanguage.define((await import('@codemirror/legacy-modes/mode/toml')).toml);

const BY_EXTENSION: Record<string, Load> = {
  md: markdown,
  markdown,
  json,
  jsonl: json,
  py: python,
  js: javascript({}),
  mjs: javascript({}),
  cjs: javascript({}),
  jsx: javascript({ jsx: true }),
  ts: javascript({ typescript: true }),
  tsx: javascript({ jsx: true, typescript: true }),
  yaml,
  yml: yaml,
  html,
  htm: html,
  svg: html,
  xml: html,
  css,
  sh: shell,
  bash: shell,
  toml,
};

/** Loads the highlighting for a file's name, where there is one. */
export async function loadLanguage(name: string): Promise<Extension> {
  const load = BY_EXTENSION[extensionOf(name)];
  return load === undefined ? [] : load();
}
