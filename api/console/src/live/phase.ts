/** Phase of the connection, as shown. */
export type Phase =
  { name: 'connecting' } | { name: 'live' } | { name: 'reconnecting' } | { name: 'away'; since: Date };

const RECONNECTING_AFTER = 3000;
const AWAY_AFTER = 15_000;

/** Turns losses and returns of the connection into what is shown: short losses are not. */
export class PhaseClock {
  phase: Phase = { name: 'connecting' };
  private lostAt: number | undefined = Date.now();
  private timers: ReturnType<typeof setTimeout>[] = [];

  constructor(private readonly onChange: (phase: Phase) => void) {
    this.schedule();
  }

  /** Notes that the stream is there. */
  connected(): void {
    this.lostAt = undefined;
    this.stop();
    this.show({ name: 'live' });
  }

  /** Notes that the stream is gone; repeated notes change nothing. */
  lost(): void {
    if (this.lostAt !== undefined) return;
    this.lostAt = Date.now();
    this.schedule();
  }

  /** Ends all waiting. */
  stop(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers = [];
  }

  private schedule(): void {
    const since = new Date(this.lostAt ?? Date.now());
    this.timers = [
      setTimeout(() => this.show({ name: 'reconnecting' }), RECONNECTING_AFTER),
      setTimeout(() => this.show({ name: 'away', since }), AWAY_AFTER),
    ];
  }

  private show(phase: Phase): void {
    if (phase.name === this.phase.name) return;
    this.phase = phase;
    this.onChange(phase);
  }
}
