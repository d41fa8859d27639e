import { post } from '../client';
import type { Schemas } from '../types';

/** Who keeps the present image, and why. */
export interface KeptUser {
  username: string;
  reason: string;
}

/** Effects of a rollout that is not started (`dry_run`); fields of an older server are absent. */
export interface RolloutPreview {
  total: number;
  /** First users that move, in order. */
  users?: string[];
  /** First users that keep what they have. */
  skipped?: KeptUser[];
  /** Number of running agents that are replaced. */
  restarts?: number;
  warnings?: string[];
}

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

/** Effects of the removal of an image that is not done (`dry_run`). */
export interface ImageRemoval {
  image?: string;
  /** References that go. */
  references?: string[];
}

/** Asks what the removal of an image would do. */
export function previewRemoval(image: string, force: boolean, signal: AbortSignal): Promise<ImageRemoval> {
  return post<ImageRemoval>('/api/admin/images/delete', { image, force, dry_run: true }, { signal });
}
