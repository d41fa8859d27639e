import { BackOff } from './back-off';
import type { ClientFrame, EndCode, ServerFrame } from './protocol';
import { readFrame } from './read-frame';

/** Milliseconds between pings. */
const PING = 30_000;
/** Silence after a ping after which the connection is given up. */
const SILENCE = 45_000;
/** Silence after which a page that is shown again does not trust the connection. */
const DOUBT = 20_000;

/** Reason for which no connection is made until the caller asks for it. */
export type Halt = 'deleted' | 'failed' | 'chat_off' | 'signed_out' | 'refused';

/** Result of asking why a connection was refused. */
export type Refusal = 'retry' | 'slowly' | Halt | { slowly: string };

/** Needs of a connection; all but the sockets are the caller's. */
export interface ConnectionOptions {
  /** Address of the socket, with the position to resume from. */
  url: () => string;
  onFrame: (frame: ServerFrame) => void;
  /** Called at each change of the connection. */
  onStatus: (status: ConnectionStatus) => void;
  /** Asks why a connection was not accepted; waits until the user has signed in again. */
  explain: () => Promise<Refusal>;
  /** Makes a socket; another one in tests. */
  open?: (url: string) => WebSocket;
}

/** State of the connection. */
export interface ConnectionStatus {
  open: boolean;
  halted?: Halt;
  /** Code of the refusal that lasts. */
  refused?: string;
}

/** Socket of one conversation that is opened again whenever it is lost. */
export class ChatConnection {
  private socket: WebSocket | undefined;
  private readonly backOff = new BackOff();
  private retry: ReturnType<typeof setTimeout> | undefined;
  private beat: ReturnType<typeof setInterval> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private heardAt = 0;
  private closed = false;
  private halted = false;

  constructor(private readonly options: ConnectionOptions) {}

  /** Connects, and again whenever the connection is lost. */
  start(): void {
    this.closed = false;
    addEventListener('online', this.wake);
    document.addEventListener('visibilitychange', this.onVisibility);
    this.connect();
  }

  /** Ends the connection for good. */
  close(): void {
    this.closed = true;
    removeEventListener('online', this.wake);
    document.removeEventListener('visibilitychange', this.onVisibility);
    this.drop();
  }

  /** Sends a frame; returns false when there is no connection. */
  send(frame: ClientFrame): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /** Connects at once where there is no connection. */
  readonly wake = (): void => {
    if (this.closed || this.halted || this.socket?.readyState === WebSocket.OPEN) return;
    this.backOff.reset();
    this.connect();
  };

  /** Connects again after it was halted. */
  resume(): void {
    this.halted = false;
    this.wake();
  }

  private readonly onVisibility = (): void => {
    if (document.visibilityState !== 'visible') return;
    if (this.socket?.readyState !== WebSocket.OPEN) this.wake();
    else if (Date.now() - this.heardAt > DOUBT) this.ping();
  };

  private connect(): void {
    this.drop();
    if (this.closed || this.halted) return;
    const open = this.options.open ?? ((url: string) => new WebSocket(url));
    const socket = open(this.options.url());
    let opened = false;
    let end: EndCode | undefined;
    this.socket = socket;
    socket.onopen = () => {
      opened = true;
      this.heard();
      this.beat = setInterval(() => this.ping(), PING);
    };
    socket.onmessage = ({ data }) => {
      this.heard();
      const frame = readFrame(data);
      if (frame === undefined) return;
      if (frame.type === 'hello') {
        this.backOff.reset();
        this.options.onFrame(frame);
        this.options.onStatus({ open: true });
        return;
      }
      if (frame.type === 'end') end = frame.code;
      this.options.onFrame(frame);
    };
    socket.onclose = ({ code }) => {
      if (this.socket !== socket) return;
      this.drop();
      this.options.onStatus({ open: false });
      void this.lost(code, end, opened);
    };
  }

  /** Gives up the socket and everything that waits for it. */
  private drop(): void {
    clearTimeout(this.retry);
    clearInterval(this.beat);
    clearTimeout(this.silence);
    this.silence = undefined;
    const { socket } = this;
    this.socket = undefined;
    if (socket === undefined) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  private async lost(code: number, end: EndCode | undefined, opened: boolean): Promise<void> {
    if (code === 4404 || end === 'deleted') this.halt('deleted');
    else if (code === 4409 || end === 'chat_off') this.halt('chat_off');
    else if (end === 'failed') this.halt('failed');
    else if (code === 4408 || end === 'slow') this.connect();
    else if (end === 'busy') {
      this.backOff.slowDown();
      this.later();
    } else if (opened && code !== 4401 && end !== 'session_ended') this.later();
    else await this.ask();
  }

  private async ask(): Promise<void> {
    const { backOff } = this;
    let refusal: Refusal;
    try {
      refusal = await this.options.explain();
    } catch {
      refusal = 'retry';
    }
    // Another attempt was made meanwhile.
    if (this.closed || this.socket !== undefined) return;
    if (typeof refusal === 'object') {
      backOff.slowDown();
      this.options.onStatus({ open: false, refused: refusal.slowly });
    } else if (refusal === 'slowly') {
      backOff.slowDown();
    } else if (refusal !== 'retry') {
      this.halt(refusal);
      return;
    }
    this.later();
  }

  private later(): void {
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), this.backOff.next());
  }

  private halt(halted: Halt): void {
    this.halted = true;
    this.options.onStatus({ open: false, halted });
  }

  private ping(): void {
    if (!this.send({ type: 'ping' })) return;
    this.silence ??= setTimeout(() => {
      this.options.onStatus({ open: false });
      this.connect();
    }, SILENCE);
  }

  private heard(): void {
    this.heardAt = Date.now();
    clearTimeout(this.silence);
    this.silence = undefined;
  }
}
