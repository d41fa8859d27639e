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
