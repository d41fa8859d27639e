import type { Change, LiveMessage } from './messages';

/** Waiting times between attempts to connect, in milliseconds; the last one is repeated. */
const BACK_OFF = [500, 1000, 2000, 5000, 10_000];
/** The server says that it is there every 15 s: a stream that is silent for longer is dead. */
const SILENCE = 40_000;

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
    void this.run(controller).then((goesOn) => {
      if (this.controller !== controller) return;
      this.controller = undefined;
      if (goesOn) this.wait();
    });
  }

  /** Disconnects for good; `start` connects again from the last event. */
  stop(): void {
    clearTimeout(this.timer);
    this.controller?.abort();
    this.controller = undefined;
  }

  private wait(): void {
    const delay = BACK_OFF[Math.min(this.attempt, BACK_OFF.length - 1)] ?? 0;
    this.attempt += 1;
    this.timer = setTimeout(() => this.start(), delay * (0.75 + Math.random() / 2));
  }

  /** Reads one connection to its end. Returns false when the session has ended. */
  private async run(controller: AbortController): Promise<boolean> {
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => controller.abort(), SILENCE);
    };
    try {
      heard();
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      if (this.lastId !== '') headers['Last-Event-ID'] = this.lastId;
      const init: RequestInit = {
        headers,
        signal: controller.signal,
        credentials: 'same-origin',
        cache: 'no-store',
      };
      const response = await this.fetcher(this.url, init);
      if (response.status === 401 || response.status === 403) {
        this.tell({ type: 'ended' });
        return false;
      }
      if (response.ok && response.body !== null) await this.read(response.body, heard);
    } catch {
      // A lost connection is told below, whatever the cause.
    } finally {
      clearTimeout(silence);
    }
    if (this.controller === controller) this.tell({ type: 'lost' });
    return true;
  }

  private async read(body: ReadableStream<Uint8Array>, heard: () => void): Promise<void> {
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
      for (const block of blocks) this.take(block);
    }
  }

  private take(block: string): void {
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
      this.attempt = 0;
      this.tell({ type: 'connected' });
      if (name === 'resync') this.tell({ type: 'resync' });
    } else if (name === 'executors') {
      this.tell({ type: 'change', change: EXECUTORS });
    } else {
      this.tell({ type: 'change', change: JSON.parse(data) as Change });
    }
  }
}
