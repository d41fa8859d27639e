import { getRaw } from '../api/client';
import { readEvents } from '../api/event-lines';
import { Failure } from '../api/failure';

/** Lines that are read when a log is opened. */
const TAIL = 2000;

const STAMP = /^\d{4}-\d\d-\d\dT[\d:.]+Z/;

/** Follows the log of a container; goes on after the last line when it is begun again. */
export class LogReader {
  private last = '';
  private controller: AbortController | undefined;

  constructor(
    private readonly path: string,
    private readonly query: Record<string, string>,
    private readonly onLine: (line: string) => void,
  ) {}

  /** Reads until the log ends. Throws a Failure when it cannot be read. */
  async follow(): Promise<void> {
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    const from = this.last === '' ? { tail: TAIL } : { since: this.last, tail: 'all' };
    const query = { ...this.query, follow: true, ...from };
    const options = { signal: controller.signal, accept: 'text/event-stream' };
    const { body } = await getRaw(this.path, query, options);
    if (body === null) return;
    // Lines of the time from which on the log is asked for were seen already.
    const seen = this.last;
    for await (const { name, data } of readEvents(body)) {
      if (name === 'end') return;
      if (name === 'error') throw failureOf(data);
      const stamp = STAMP.exec(data)?.[0] ?? '';
      if (stamp !== '' && stamp <= seen) continue;
      if (stamp !== '') this.last = stamp;
      this.onLine(data);
    }
  }

  /** Ends the reading. */
  stop(): void {
    this.controller?.abort();
  }
}

function failureOf(data: string): Failure {
  const { error = '', code = 'unexpected' } = JSON.parse(data) as { error?: string; code?: string };
  return new Failure(200, code, error);
}
