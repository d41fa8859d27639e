/** Part of BroadcastChannel that an election needs. */
export type Channel = Pick<BroadcastChannel, 'postMessage' | 'onmessage' | 'close'>;

/** Messages of a leader to the other tabs. */
interface Beat {
  beat: { id: string; term: number; leaves: boolean };
}

const BEAT_EVERY = 1000;
const LEADER_IS_GONE = 3000;

/**
 * Elects one of a browser's tabs by heartbeats. A tab that misses the leader for three seconds leads the
 * next term; of two leaders the one of the older term yields, or the one with the greater id.
 */
export class Election {
  private term = 0;
  private leading = false;
  private heardAt: number;
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly channel: Channel,
    private readonly id: string,
    private readonly onChange: (leads: boolean) => void,
    private readonly onMessage: (message: unknown) => void,
    private readonly now: () => number = Date.now,
  ) {
    // A random part of the waiting time keeps tabs that open together from leading together.
    this.heardAt = now() - LEADER_IS_GONE + 200 + Math.random() * 800;
    channel.onmessage = (event) => this.receive(event.data);
    this.timer = setInterval(() => this.tick(), BEAT_EVERY / 2);
  }

  /** Tells all other tabs. */
  send(message: unknown): void {
    this.channel.postMessage({ message });
  }

  /** Leaves, so that another tab can lead at once. */
  close(): void {
    clearInterval(this.timer);
    if (this.leading) this.beat(true);
    this.leading = false;
    this.channel.close();
  }

  private tick(): void {
    if (this.leading) {
      this.beat(false);
    } else if (this.now() - this.heardAt >= LEADER_IS_GONE) {
      this.term += 1;
      this.leading = true;
      this.beat(false);
      this.onChange(true);
    }
  }

  private beat(leaves: boolean): void {
    const beat: Beat = { beat: { id: this.id, term: this.term, leaves } };
    this.channel.postMessage(beat);
  }

  private receive(data: unknown): void {
    if (typeof data !== 'object' || data === null) return;
    if ('beat' in data) this.compare((data as Beat).beat);
    else if ('message' in data) this.onMessage(data.message);
  }

  private compare(other: Beat['beat']): void {
    if (other.leaves) {
      if (!this.leading) this.heardAt = this.now() - LEADER_IS_GONE + Math.random() * 500;
      this.term = Math.max(this.term, other.term);
      return;
    }
    const older = other.term < this.term || (other.term === this.term && this.leading && other.id > this.id);
    if (older) {
      if (this.leading) this.beat(false);
      return;
    }
    this.term = other.term;
    this.heardAt = this.now();
    if (this.leading) {
      this.leading = false;
      this.onChange(false);
    }
  }
}
