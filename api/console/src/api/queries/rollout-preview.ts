import { post } from '../client';
import type { Schemas } from '../types';

/** A user who keeps the present image, and the reason. */
export type KeptUser = Schemas['SkippedUser'];
/** Effects of a rollout that is not started. */
export type RolloutPreview = Schemas['RolloutStarted'];
/** Effects of the removal of an image that is not done. */
export type ImageRemoval = Schemas['ImageDeleted'];

/** Request for a rollout: all fields but `dry_run` and `wait`. */
export interface RolloutRequest {
  path: '/api/admin/images/upgrade' | '/api/admin/images/migrate';
  body: Record<string, unknown>;
}

/** Asks what a rollout would do. */
export function previewRollout({ path, body }: RolloutRequest, signal: AbortSignal): Promise<RolloutPreview> {
  return post<RolloutPreview>(path, { ...body, dry_run: true }, { signal });
}

/** Starts a rollout and returns at once. */
export function startRollout({ path, body }: RolloutRequest): Promise<Schemas['RolloutStarted']> {
  return post<Schemas['RolloutStarted']>(path, { ...body, wait: 0 });
}

/** Asks what the removal of an image would do. */
export function previewRemoval(image: string, force: boolean, signal: AbortSignal): Promise<ImageRemoval> {
  return post<ImageRemoval>('/api/admin/images/delete', { image, force, dry_run: true }, { signal });
}
