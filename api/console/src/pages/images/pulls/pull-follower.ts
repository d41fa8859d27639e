import { postRaw } from '../../../api/client';
import { readEvents } from '../../../api/event-lines';
import { Failure } from '../../../api/failure';
import { addPullEvent, type PullView, UNREAD_PULL } from './pull-view';

/** Waiting times before a lost stream is opened again, in milliseconds; the last one is repeated. */
const AGAIN = [1000, 2000, 5000, 15_000];
/** The server says that it is there every 15 s: a stream that is silent for longer is dead. */
const SILENCE = 40_000;
/** Progress is shown this often. */
const FLUSH = 150;

interface Watcher {
  show: (view: PullView) => void;
  /** Called with the id of the first event: from it, the whole pull can be read again. */
  onFirst: (id: string) => void;
}

/** Requests a pull and reads how it goes, over losses of the connection; a stream that is stopped stops no pull. */
export class PullFollower {
  private view = UNREAD_PULL;
  private reading: AbortController | undefined;
  private stopped = false;
  private flushing: ReturnType<typeof setTimeout> | undefined;
  private attempt = 0;

  /** With `last`, the id of an event, nothing is requested: reading goes on after it. */
  constructor(
    private readonly image: string,
    private last: string | undefined,
    private readonly watcher: Watcher,
  ) {}

  /** Reads until the pull has ended or `stop` was called. */
  async run(): Promise<void> {
    while (!this.stopped && this.view.end === undefined) {
      try {
        await this.read();
      } catch (thrown) {
        if (this.stopped) return;
        const failure = Failure.from(thrown);
        // A request that was refused was not recorded; one that was is read again.
        const isFinal = this.last === undefined || failure.status === 400 || failure.status === 404;
        if (isFinal) this.view = { ...this.view, end: { failure } };
      }
      if (this.view.end === undefined) await this.pause();
    }
    this.flush();
  }

  /** Stops the reader. */
  stop(): void {
    this.stopped = true;
    this.reading?.abort();
    clearTimeout(this.flushing);
  }

  private async read(): Promise<void> {
    const reading = new AbortController();
    this.reading = reading;
    const { signal } = reading;
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => reading.abort(), SILENCE);
    };
    const resume: Record<string, string> = this.last === undefined ? {} : { 'Last-Event-ID': this.last };
    const headers = { Accept: 'text/event-stream', ...resume };
    try {
      const { body } = await postRaw('/api/admin/images/pull', { image: this.image }, { signal, headers });
      if (body === null) return;
      heard();
      for await (const { data, id } of readEvents(body, heard)) {
        signal.throwIfAborted();
        this.attempt = 0;
        if (id !== undefined) {
          if (this.last === undefined) this.watcher.onFirst(id);
          this.last = id;
        }
        this.view = addPullEvent(this.view, data);
        this.flushing ??= setTimeout(() => this.flush(), FLUSH);
        if (this.view.end !== undefined) return;
      }
    } finally {
      clearTimeout(silence);
    }
  }

  private pause(): Promise<void> {
    const time = AGAIN[Math.min(this.attempt, AGAIN.length - 1)];
    this.attempt += 1;
    return new Promise((resolve) => setTimeout(resolve, time));
  }

  private flush(): void {
    clearTimeout(this.flushing);
    this.flushing = undefined;
    if (!this.stopped) this.watcher.show(this.view);
  }
}
