import type { ServerFrame } from '../chat/protocol';

/** A socket whose other end is the test. */
export class FakeSocket {
  static all: FakeSocket[] = [];
  readyState: number = WebSocket.CONNECTING;
  readonly sent: Record<string, unknown>[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }

  /** Makes a socket for `ChatConnection`. */
  static readonly make = (url: string): WebSocket => new FakeSocket(url) as unknown as WebSocket;

  /** The socket that was opened last. */
  static get last(): FakeSocket {
    const last = FakeSocket.all.at(-1);
    if (last === undefined) throw new Error('no socket was opened');
    return last;
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }

  close(): void {
    this.readyState = WebSocket.CLOSED;
  }

  /** Accepts the connection. */
  accept(): void {
    this.readyState = WebSocket.OPEN;
    this.onopen?.();
  }

  /** Lets a frame arrive. */
  receive(frame: ServerFrame | Record<string, unknown>): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }

  /** Ends the connection from the other side. */
  end(code = 1006): void {
    this.readyState = WebSocket.CLOSED;
    this.onclose?.({ code });
  }
}

/** A first frame as the service sends it. */
export function helloFrame(parts: Record<string, unknown> = {}): Record<string, unknown> {
  const conversation = {
    id: 'c1',
    title: 'First',
    created_at: '2026-05-11T09:00:00Z',
    last_used_at: '2026-05-11T09:00:00Z',
  };
  const usual = { epoch: 'e1', n: 5, reset: true, older: false, conversation, pictures: true, stop: true };
  return { type: 'hello', ...usual, ...parts };
}
