import type { Rollout, RolloutUser } from '../../api/queries/rollouts';

/**
 * The numbers of a rollout as they are shown. The server counts users who still have the new image and users
 * who are back alike: on the way back those of the users count, or none while not all are known.
 */
export function shownProgress(rollout: Rollout, users: RolloutUser[]): Rollout['progress'] | undefined {
  const { phase, progress } = rollout;
  if (phase !== 'rolling_back') return progress;
  if (users.length < progress.total) return undefined;
  const done = users.filter(({ state }) => state === 'rolled_back' || state === 'skipped').length;
  return { ...progress, done, pending: progress.pending + progress.done - done };
}
