import type { Rollout } from '../../api/queries/config';

/** The revision at the end of a rollout's words, such as `configuration 7`. */
export function revisionOf(words: string | null | undefined): number | undefined {
  const number = Number(/ (\d+)$/.exec(words ?? '')?.[1]);
  return Number.isInteger(number) ? number : undefined;
}

/** The rollout of settings that the page shows: one under way, else the one that was started from it. */
export function shownRollout(rollouts: Rollout[], last: string | undefined): Rollout | undefined {
  const ours = rollouts.filter(({ type }) => type === 'config');
  return ours.find(({ finished_at: end }) => !end) ?? ours.find(({ id }) => id === last);
}

/** The reason and the text of a failed user's message; the end of the log is left out where its lines are known. */
export function splitMessage(message: string, hasLog: boolean): { reason: string; text: string } {
  const [, reason = '', rest = message] = /^([A-Z]\w+): ([^]*)$/.exec(message) ?? [];
  const end = hasLog ? rest.indexOf('; end of its log:') : -1;
  return { reason, text: end < 0 ? rest : rest.slice(0, end) };
}
