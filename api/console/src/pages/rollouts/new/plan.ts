import type { RolloutRequest } from '../../../api/queries/rollout-preview';
import type { Search } from '../../../components/table/list-state';
import { shellWord } from '../commands';

/** Whom a rollout is for. */
export const WHOM = ['all', 'groups', 'users', 'image'] as const;
export type Whom = (typeof WHOM)[number];

/** A rollout that is being described; all of it is in the address. */
export interface RolloutPlan {
  /** A tag of the configured repository, or a reference. */
  image: string;
  who: Whom;
  groups: string[];
  users: string[];
  /** The image whose users move. */
  from: string;
  /** Fields as they were typed; empty: the server's value. */
  batch: string;
  minReady: string;
  timeout: string;
  pause: boolean;
}

const first = (value: string | string[] | undefined): string =>
  (Array.isArray(value) ? value[0] : value) ?? '';
const list = (value: string | string[] | undefined): string[] =>
  (Array.isArray(value) ? value : [value ?? '']).filter((one) => one !== '');

/** Reads a plan from the query of the address. */
export function readPlan(search: Search): RolloutPlan {
  const who = WHOM.find((one) => one === first(search.who)) ?? 'all';
  return {
    image: first(search.image),
    who,
    groups: list(search.group),
    users: list(search.user),
    from: first(search.from),
    batch: first(search.batch),
    minReady: first(search.min_ready),
    timeout: first(search.timeout),
    pause: first(search.pause) !== 'false',
  };
}

/** Writes a plan as a query; what is as usual is left out. */
export function writePlan(plan: RolloutPlan): Search {
  const text = (value: string): string | undefined => (value === '' ? undefined : value);
  return {
    image: text(plan.image),
    who: plan.who === 'all' ? undefined : plan.who,
    group: plan.who === 'groups' ? plan.groups : undefined,
    user: plan.who === 'users' ? plan.users : undefined,
    from: plan.who === 'image' ? text(plan.from) : undefined,
    batch: text(plan.batch),
    min_ready: text(plan.minReady),
    timeout: text(plan.timeout),
    pause: plan.pause ? undefined : 'false',
  };
}

/** The request for a plan; undefined while the image or the users are missing. */
export function requestOf(plan: RolloutPlan): RolloutRequest | undefined {
  const image = plan.image.trim();
  if (image === '') return undefined;
  const batch = plan.batch.trim();
  const care = {
    // What is no number is refused by the server, at its field.
    max_unavailable: batch === '' ? undefined : /^\d+$/.test(batch) ? Number(batch) : batch,
    min_ready: plan.minReady.trim() || undefined,
    health_timeout: plan.timeout.trim() || undefined,
    pause_on_failure: plan.pause,
  };
  const upgrade = '/api/admin/images/upgrade';
  switch (plan.who) {
    case 'all':
      return { path: upgrade, body: { tag: image, all: true, ...care } };
    case 'groups':
      return plan.groups.length === 0
        ? undefined
        : { path: upgrade, body: { tag: image, groups: plan.groups, ...care } };
    case 'users':
      return plan.users.length === 0
        ? undefined
        : { path: upgrade, body: { tag: image, users: plan.users, ...care } };
    case 'image':
      return plan.from.trim() === ''
        ? undefined
        : { path: '/api/admin/images/migrate', body: { image: plan.from.trim(), target: image, ...care } };
  }
}

/** Users of a command that names each. */
const NAMED = 20;

/** The command that starts the same rollout; undefined where there is none. `users` move, where they are known. */
export function startCommand(plan: RolloutPlan, users: string[] | undefined): string | undefined {
  const words = ['agentyard rollout start', shellWord(plan.image.trim())];
  if (plan.who === 'all') words.push('--all');
  else if (plan.who === 'image') words.push('--from', shellWord(plan.from.trim()));
  else {
    const names = plan.who === 'users' ? plan.users : users;
    if (names === undefined || names.length > NAMED) return undefined;
    words.push(...names.map((name) => `--user ${shellWord(name)}`));
  }
  if (plan.batch.trim() !== '') words.push('--max-unavailable', shellWord(plan.batch.trim()));
  if (plan.minReady.trim() !== '') words.push('--min-ready', shellWord(plan.minReady.trim()));
  if (plan.timeout.trim() !== '') words.push('--health-timeout', shellWord(plan.timeout.trim()));
  if (!plan.pause) words.push('--no-pause-on-failure');
  return words.join(' ');
}

/** The form's field that a refusal is about, by the server's name for it. */
export function fieldOf(name: unknown, who: Whom): keyof RolloutPlan | undefined {
  switch (name) {
    case 'tag':
    case 'target':
      return 'image';
    case 'image':
      return 'from';
    case 'users':
      return who === 'groups' ? 'groups' : who === 'users' ? 'users' : undefined;
    case 'groups':
      return 'groups';
    case 'max_unavailable':
      return 'batch';
    case 'min_ready':
      return 'minReady';
    case 'health_timeout':
      return 'timeout';
    default:
      return undefined;
  }
}
