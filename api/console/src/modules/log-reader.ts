import { getRaw } from '../api/client';
import { readEvents } from '../api/event-lines';
import { Failure } from '../api/failure';

/** Lines that are read when a log is opened. */
const TAIL = 2000;
/** Lines that are read when it is opened again after a while. */
const MOST_MISSED = 20_000;
/** The server says that it is there every 15 s: a stream that is silent for longer is dead. */
const SILENCE = 40_000;

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z/;

/** The time of a line so that later ones compare as greater; empty when it has none. */
function stampOf(line: string): string {
  const [, seconds, fraction = ''] = STAMP.exec(line) ?? [];
  return seconds === undefined ? '' : `${seconds}.${fraction.padEnd(9, '0')}Z`;
}

/** Follows the log of a container; goes on after the last line when it is begun again. */
export class LogReader {
  private last = '';
  /** Lines of the time `last` that were read. */
  private atLast = 0;
  private controller: AbortController | undefined;

  constructor(
    private readonly path: string,
    private readonly query: Record<string, string>,
    private readonly onLine: (line: string) => void,
    private readonly onOpen: () => void = () => undefined,
  ) {}

  /** Reads until the log ends; one call at a time reads. Throws when the connection fails. */
  async follow(): Promise<void> {
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => controller.abort(), SILENCE);
    };
    const from = this.last === '' ? { tail: TAIL } : { since: this.last, tail: MOST_MISSED };
    const query = { ...this.query, follow: true, ...from };
    const options = { signal: controller.signal, accept: 'text/event-stream' };
    try {
      const { body } = await getRaw(this.path, query, options);
      controller.signal.throwIfAborted();
      if (body === null) return;
      this.onOpen();
      heard();
      await this.read(body, controller.signal, heard);
    } finally {
      clearTimeout(silence);
    }
  }

  /** Ends the reading. */
  stop(): void {
    this.controller?.abort();
  }

  private async read(
    body: ReadableStream<Uint8Array>,
    signal: AbortSignal,
    heard: () => void,
  ): Promise<void> {
    // The server begins a little before the time that it is asked for: these lines were read already.
    let known = this.last !== '';
    let repeated = this.atLast;
    for await (const { name, data } of readEvents(body, heard)) {
      signal.throwIfAborted();
      if (name === 'end') return;
      if (name === 'error') throw failureOf(data);
      const stamp = stampOf(data);
      if (stamp > this.last) known = false;
      if (known && (stamp < this.last || repeated > 0)) {
        if (stamp === this.last) repeated -= 1;
        continue;
      }
      if (stamp === this.last) this.atLast += 1;
      else if (stamp > this.last) {
        this.last = stamp;
        this.atLast = 1;
      }
      this.onLine(data);
    }
    throw new Failure(0, 'network', '');
  }
}

function failureOf(data: string): Failure {
  const { error = '', code = 'unexpected' } = JSON.parse(data) as { error?: string; code?: string };
  return new Failure(200, code, error);
}
