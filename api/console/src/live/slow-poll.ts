import type { QueryClient } from '@tanstack/react-query';

import { sessionHasEnded } from '../api/session';
import { isLive } from './invalidate';

const EVERY = 60_000;

/** Reads what is shown again once a minute while there is no stream, and tells of when it is. */
export class SlowPoll {
  private timer: ReturnType<typeof setInterval> | undefined;
  private busy = false;

  constructor(
    private readonly client: QueryClient,
    private readonly onRead: (asOf: Date) => void,
  ) {}

  /** Begins; everything shown was up to date at `since`. */
  start(since: Date): void {
    this.timer ??= setInterval(() => void this.read(since), EVERY);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private async read(since: Date): Promise<void> {
    if (this.busy || document.hidden || !navigator.onLine || sessionHasEnded()) return;
    this.busy = true;
    const { timer } = this;
    await this.client.invalidateQueries({ predicate: isLive });
    this.busy = false;
    if (timer !== this.timer) return;
    const shown = this.client.getQueryCache().findAll({ type: 'active', predicate: isLive });
    if (shown.length === 0) return;
    const oldest = Math.min(...shown.map(({ state }) => state.dataUpdatedAt));
    this.onRead(new Date(Math.max(since.getTime(), oldest)));
  }
}
