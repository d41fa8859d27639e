const FIRST = 1000;
const LONGEST = 30_000;

/** Waiting times between attempts to connect: 1 s to 30 s, doubled at each failure. */
export class BackOff {
  private failures = 0;

  /** Milliseconds until the next attempt. */
  next(): number {
    const wait = Math.min(LONGEST, FIRST * 2 ** Math.min(this.failures, 10));
    this.failures += 1;
    return wait;
  }

  /** Waits as long as possible from now on. */
  slowDown(): void {
    this.failures = 10;
  }

  reset(): void {
    this.failures = 0;
  }
}
