/** Milliseconds between two readings of a folder while files arrive. */
const EVERY = 2000;

/** Has folders read again when files have arrived: at the end, and at most every 2 s before. */
export class Arrivals {
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly refresh: () => void) {}

  /** Notes that a file has arrived; `last` when no other one is on its way. */
  note(last: boolean): void {
    if (last) {
      this.stop();
      this.refresh();
    } else {
      this.timer ??= setTimeout(() => {
        this.timer = undefined;
        this.refresh();
      }, EVERY);
    }
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
