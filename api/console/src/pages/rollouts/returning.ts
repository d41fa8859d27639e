import { readUsers, type RolloutUser } from '../../api/queries/rollouts';
import { shortImage } from '../../modules/image-name';

/** States of users who have the new image, or are about to get it. */
const MOVED: ReadonlySet<RolloutUser['state']> = new Set<RolloutUser['state']>([
  'done',
  'moving',
  'putting_back',
]);
/** Users that are named at most. */
const MOST = 2000;

/** Users who return to the same image. */
export interface Returning {
  image: string;
  users: string[];
}

/** Groups the users who return by the image that they had. */
export function groupReturning(users: RolloutUser[]): Returning[] {
  const byImage = new Map<string, string[]>();
  for (const { username, previous_image: before } of users) {
    // Those who had the image before the rollout have no previous one and keep it.
    if (!before) continue;
    const image = shortImage(before);
    byImage.set(image, [...(byImage.get(image) ?? []), username]);
  }
  return [...byImage].map(([image, names]) => ({ image, users: names }));
}

/** Reads who returns when a rollout is rolled back. */
export async function readReturning(id: string, signal: AbortSignal): Promise<Returning[]> {
  return groupReturning(await readUsers(id, ({ state }) => MOVED.has(state), MOST, signal));
}

/** Number of users who return. */
export function countReturning(groups: Returning[]): number {
  return groups.reduce((sum, { users }) => sum + users.length, 0);
}
