import type { Change, LiveMessage } from './messages';

/** Waiting times between attempts to connect, in milliseconds; the last one is repeated. */
const BACK_OFF = [1000, 2000, 5000, 10_000, 20_000, 30_000];
/** The server says that it is there every 15 s: a stream that is silent for longer is dead. */
const SILENCE = 40_000;
/** A stream that is silent for this long is not trusted by a tab that comes back from sleep. */
const DOUBT = 20_000;
/** A connection that lasts this long was no failed attempt. */
const STEADY = 10_000;

/** The stream of a user tells how many executors are connected; lists of them are out of date then. */
const EXECUTORS: Change = {
  object: 'executor/own',
  uid: '',
  generation: 0,
  observed_generation: 0,
  ready: '',
  reason: '',
  status: '',
};

type Fetch = typeof fetch;

/** Reads the server's watch stream, and connects again with the id of the last event. */
export class EventStream {
  private lastId = '';
  private attempt = 0;
  private connections = 0;
  private begunAt = 0;
  private heardAt = 0;
  private controller: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly url: string,
    private readonly tell: (message: LiveMessage) => void,
    private readonly fetcher: Fetch = (input, init) => fetch(input, init),
  ) {}

  /** Connects, unless it is connected already. */
  start(): void {
    if (this.controller !== undefined) return;
    clearTimeout(this.timer);
    const controller = new AbortController();
    this.controller = controller;
    this.connections += 1;
    this.begunAt = this.heardAt = Date.now();
    void this.run(controller).then((goesOn) => {
      if (this.controller !== controller) return;
      this.controller = undefined;
      if (goesOn) this.wait();
    });
  }

  /** Connects without waiting any longer, and in place of a connection that may be dead after a sleep. */
  wake(): void {
    if (this.controller !== undefined) {
      if (Date.now() - this.heardAt < DOUBT) return;
      this.stop();
      this.tell({ type: 'lost' });
    }
    clearTimeout(this.timer);
    // Many tabs may ask at once.
    const rest = this.begunAt + (BACK_OFF[0] ?? 0) - Date.now();
    this.timer = setTimeout(() => this.start(), Math.max(0, rest));
  }

  /** Disconnects for good; `start` connects again from the last event. */
  stop(): void {
    clearTimeout(this.timer);
    this.controller?.abort();
    this.controller = undefined;
  }

  private wait(): void {
    if (Date.now() - this.begunAt >= STEADY) this.attempt = 0;
    const delay = BACK_OFF[Math.min(this.attempt, BACK_OFF.length - 1)] ?? 0;
    this.attempt += 1;
    this.timer = setTimeout(() => this.start(), delay * (0.7 + Math.random() * 0.3));
  }

  /** Reads one connection to its end. Returns false when the session has ended. */
  private async run(controller: AbortController): Promise<boolean> {
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = (): void => {
      if (this.controller === controller) this.heardAt = Date.now();
      clearTimeout(silence);
      silence = setTimeout(() => controller.abort(), SILENCE);
    };
    try {
      heard();
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      const resumes = this.lastId !== '';
      if (resumes) headers['Last-Event-ID'] = this.lastId;
      const init: RequestInit = {
        headers,
        signal: controller.signal,
        credentials: 'same-origin',
        cache: 'no-store',
      };
      const response = await this.fetcher(this.url, init);
      if (response.status === 401) {
        this.tell({ type: 'ended' });
        return false;
      }
      if (response.status === 403) this.tell({ type: 'refused' });
      // The server does not know this position: it has to be asked for another one.
      if (response.status === 400) this.lastId = '';
      if (response.ok && response.body !== null) await this.read(response.body, heard, resumes);
    } catch {
      // A lost connection is told below, whatever the cause.
    } finally {
      clearTimeout(silence);
    }
    if (this.controller === controller) this.tell({ type: 'lost' });
    return true;
  }

  private async read(body: ReadableStream<Uint8Array>, heard: () => void, resumes: boolean): Promise<void> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? '';
      for (const block of blocks) this.take(block, resumes);
    }
  }

  private take(block: string, resumes: boolean): void {
    let name = 'message';
    let data = '';
    for (const line of block.split(/\r?\n/)) {
      const at = line.indexOf(':');
      if (at <= 0) continue;
      const value = line.slice(at + 1).replace(/^ /, '');
      const field = line.slice(0, at);
      if (field === 'id') this.lastId = value;
      else if (field === 'event') name = value;
      else if (field === 'data') data += data === '' ? value : `\n${value}`;
    }
    if (data === '') return;
    if (name === 'open' || name === 'resync') {
      this.tell({ type: 'connected' });
      // Changes went by while there was no position to go on from.
      const missed = !resumes && this.connections > 1;
      if (name === 'resync' || missed) this.tell({ type: 'resync' });
    } else if (name === 'executors') {
      this.tell({ type: 'change', change: EXECUTORS });
    } else {
      this.tell({ type: 'change', change: JSON.parse(data) as Change });
    }
  }
}
