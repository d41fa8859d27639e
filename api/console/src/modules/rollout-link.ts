import { linkOptions } from '@tanstack/react-router';

/** The address of a rollout within the console. */
export function rolloutPath(id: string): string {
  return `/admin/rollouts/${encodeURIComponent(id)}`;
}

/** Link to the page of a rollout. */
export function rolloutLink(id: string) {
  return linkOptions({ to: rolloutPath(id) as '/admin/rollouts' });
}
