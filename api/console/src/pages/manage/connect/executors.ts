import type { Schemas } from '../../../api/types';

type Executor = Schemas['Executor'];

/** Kinds of executors in users' words. */
export type Kind = 'browser' | 'desktop';

/** The service of the API for a kind. */
export const SERVICES: Record<Kind, Executor['service']> = { browser: 'browser', desktop: 'computer' };

/** Programs by a word of their `User-Agent`, the more special ones first. */
const PROGRAMS: [RegExp, string][] = [
  [/\bEdg\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bFirefox\//, 'Firefox'],
  [/\bChrom(e|ium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const SYSTEMS: [RegExp, string][] = [
  [/Windows/, 'Windows'],
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Mac OS|Macintosh/, 'macOS'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
];

/** Name of an executor and the system it runs on, as far as it has said. */
export function describeExecutor(executor: Executor): { name: string; system: string } {
  const { client, label, platform, user_agent: agent, version } = executor;
  const find = (list: [RegExp, string][]): string => list.find(([word]) => word.test(agent))?.[1] ?? '';
  const said = [client, version].filter(Boolean).join(' ');
  const name = [label, said, find(PROGRAMS), agent].find((text) => text !== '' && text != null) ?? '';
  return { name, system: platform ?? find(SYSTEMS) };
}
