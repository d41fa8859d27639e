import { Failure } from '../api/failure';
import { type LogLine, readLogLine } from '../components/log/log-lines';
import { LogReader } from './log-reader';

/** Older lines are dropped beyond this number. */
const MOST = 20_000;
/** New lines are shown together, this often. */
const FLUSH = 100;
/** Waiting times before a lost connection is opened again, in milliseconds; the last one is repeated. */
const AGAIN = [1000, 2000, 5000, 15_000, 30_000];

/** A connection that lasts this long was no failed attempt. */
const STEADY = 10_000;

/** The log of a container, as far as it was read. */
export interface ContainerLog {
  lines: LogLine[];
  /** Nothing was read yet. */
  loading: boolean;
  /** Failure of the last attempt to read. */
  failure?: Failure;
}

/** A log of which nothing was read yet. */
export const UNREAD: ContainerLog = { lines: [], loading: true };

/** Follows a log over restarts of the container and losses of the connection, by one reader at a time. */
export class LogFollower {
  private log = UNREAD;
  private waiting: LogLine[] = [];
  private flushing: ReturnType<typeof setTimeout> | undefined;
  private again: ReturnType<typeof setTimeout> | undefined;
  private attempt = 0;
  private openedAt = Infinity;
  /** The reading that counts; an older one that was stopped changes nothing any more. */
  private reading: object | undefined;
  private readonly reader: LogReader;

  constructor(
    path: string,
    query: Record<string, string>,
    private readonly show: (log: ContainerLog) => void,
    /** Text of the mark where the container has ended. */
    private readonly endMark: () => string,
  ) {
    const onLine = (line: string): void => {
      this.attempt = 0;
      this.add(readLogLine(line));
    };
    const onOpen = (): void => {
      this.openedAt = Date.now();
      this.update({ failure: undefined });
    };
    this.reader = new LogReader(path, query, onLine, onOpen);
  }

  /** Begins, or goes on after the last line; does nothing while it reads. */
  start(): void {
    if (this.reading === undefined) void this.read();
  }

  /** Stops the reader; `start` goes on. */
  stop(): void {
    clearTimeout(this.again);
    this.reading = undefined;
    this.reader.stop();
  }

  /** Stops for good. */
  close(): void {
    this.stop();
    clearTimeout(this.flushing);
  }

  private async read(): Promise<void> {
    clearTimeout(this.again);
    const reading = {};
    this.reading = reading;
    let failure: Failure | undefined;
    try {
      await this.reader.follow();
    } catch (thrown) {
      failure = Failure.from(thrown);
    }
    if (this.reading !== reading) return;
    this.reading = undefined;
    if (Date.now() - this.openedAt >= STEADY) this.attempt = 0;
    this.openedAt = Infinity;
    // A connection that is there again at once is nothing to speak of.
    const brief = failure?.code === 'network' && this.attempt === 0;
    this.update(brief ? {} : { failure });
    // Without new lines since the last end only a change of the container begins anew.
    const ended = failure === undefined;
    if (ended && this.attempt > 0) return;
    if (ended) this.add({ text: this.endMark(), mark: true });
    if (failure?.code !== 'not_found') this.later();
  }

  private later(): void {
    this.again = setTimeout(() => this.start(), AGAIN[Math.min(this.attempt, AGAIN.length - 1)]);
    this.attempt += 1;
  }

  private add(line: LogLine): void {
    this.waiting.push(line);
    // Timers of hidden tabs are slow.
    if (this.waiting.length >= 2 * MOST) this.waiting = this.waiting.slice(-MOST);
    this.flushing ??= setTimeout(() => this.flush(), FLUSH);
  }

  private flush(): void {
    this.flushing = undefined;
    const lines = [...this.log.lines, ...this.waiting].slice(-MOST);
    this.waiting = [];
    this.update({ lines });
  }

  private update(part: Partial<ContainerLog>): void {
    this.log = { ...this.log, loading: false, ...part };
    this.show(this.log);
  }
}
