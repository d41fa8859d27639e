import { explainRefusal, readOlder, socketUrl } from './api';
import { ChatConnection, type ConnectionStatus } from './connection';
import type { EndedEntry } from './entry-words';
import { makeClientId, type Pending, readOutbox, sendFrame, storeOutbox } from './outbox';
import type { Attachment, Conversation, EntriesPage, Entry, ServerFrame } from './protocol';
import { addOlder, applyFrame, type ChatView, EMPTY_VIEW } from './view';

/** The connection is shown as lost after this time. */
const LOST = 2000;
/** Changes are shown at most this often, in milliseconds. */
const EVERY = 50;

/** All that is shown of an open conversation. */
export interface ChatSnapshot {
  view: ChatView;
  pending: readonly Pending[];
  status: ConnectionStatus;
  /** The connection is away for longer than a moment. */
  lost: boolean;
  loadingOlder: boolean;
  olderFailed: boolean;
  /** The answer, failure or notice that came to its end last, to be read out. */
  finished: EndedEntry | undefined;
}

/** Parts of the session that tests replace. */
export interface SessionOptions {
  open?: (url: string) => WebSocket;
  older?: (id: string, before: number) => Promise<EntriesPage>;
  onConversation?: (conversation: Conversation) => void;
}

const CLOSED: ChatSnapshot = {
  view: EMPTY_VIEW,
  pending: [],
  status: { open: false },
  lost: false,
  loadingOlder: false,
  olderFailed: false,
  finished: undefined,
};

/** One open conversation: its entries, its messages on their way, its connection. */
export class ChatSession {
  private current: ChatSnapshot;
  private shown: ChatSnapshot;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private losing: ReturnType<typeof setTimeout> | undefined;
  private readonly listeners = new Set<() => void>();
  private abort = new AbortController();
  private readonly connection: ChatConnection;

  constructor(
    readonly id: string,
    private readonly options: SessionOptions = {},
  ) {
    this.current = this.shown = { ...CLOSED, pending: readOutbox(id) };
    this.connection = new ChatConnection({
      url: () => socketUrl(id, this.current.view.epoch, this.current.view.n),
      onFrame: (frame) => this.take(frame),
      onStatus: (status) => this.onStatus(status),
      explain: () => explainRefusal(id, this.abort.signal),
      open: options.open,
    });
  }

  readonly snapshot = (): ChatSnapshot => this.shown;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Connects; also after `close`. */
  start(): void {
    this.abort = new AbortController();
    this.onStatus({ open: false });
    this.connection.start();
  }

  /** Ends the connection; messages that are not acknowledged are kept for the next time. */
  close(): void {
    clearTimeout(this.timer);
    clearTimeout(this.losing);
    this.timer = this.losing = undefined;
    this.abort.abort();
    this.connection.close();
  }

  /** Connects again where the page had given up. */
  resume(): void {
    this.onStatus({ open: false });
    this.connection.resume();
  }

  /** Sends a message, at once or as soon as there is a connection. */
  send(text: string, attachments: Attachment[]): void {
    const pending = { client_id: makeClientId(), text, attachments, at: new Date().toISOString() };
    this.setPending([...this.current.pending, pending]);
    this.connection.send(sendFrame(pending));
    this.flush();
  }

  /** Sends a message again that the service did not take. */
  sendAgain(clientId: string): void {
    const pending = this.current.pending.map((one) =>
      one.client_id === clientId ? { ...one, refused: undefined } : one,
    );
    this.setPending(pending);
    const again = pending.find(({ client_id }) => client_id === clientId);
    if (again) this.connection.send(sendFrame(again));
    this.flush();
  }

  /** Forgets a message that the service did not take. */
  discard(clientId: string): void {
    this.setPending(this.current.pending.filter(({ client_id }) => client_id !== clientId));
    this.flush();
  }

  /** Stops the turn that runs. */
  stop(): void {
    const { view } = this.current;
    const { state } = view;
    if (!this.connection.send({ type: 'stop' }) || !state?.turn) return;
    this.change({ view: { ...view, state: { ...state, turn: { ...state.turn, stopping: true } } } });
  }

  /** Reads the entries before the first one. */
  async loadOlder(): Promise<void> {
    const { view, loadingOlder } = this.current;
    const first = view.entries[0];
    if (loadingOlder || !view.older || first === undefined) return;
    this.change({ loadingOlder: true, olderFailed: false });
    try {
      const page = await (this.options.older ?? readOlder)(this.id, first.id);
      this.change({ loadingOlder: false, view: addOlder(this.current.view, page) });
    } catch {
      this.change({ loadingOlder: false, olderFailed: true });
    }
    this.flush();
  }

  private take(frame: ServerFrame): void {
    this.change({ view: applyFrame(this.current.view, frame) });
    if (frame.type === 'entry' && frame.n > this.current.view.begun) this.noteEnd(frame.entry);
    if (frame.type === 'entry' && frame.entry.kind === 'user') this.acknowledge(frame.entry.client_id);
    if (frame.type === 'refused') this.refuse(frame.client_id, frame.code, frame.message);
    if (frame.type === 'hello') this.sendPending();
    if (frame.type === 'hello' || frame.type === 'conversation') {
      this.options.onConversation?.(frame.conversation);
    }
  }

  private noteEnd(entry: Entry): void {
    const { finished } = this.current;
    if (entry.kind !== 'answer' && entry.kind !== 'failure' && entry.kind !== 'notice') return;
    if (entry.kind === 'answer' && entry.streaming) return;
    if (entry.id > (finished?.id ?? 0)) this.change({ finished: entry });
  }

  private acknowledge(clientId: string | null): void {
    const rest = this.current.pending.filter(({ client_id }) => client_id !== clientId);
    if (rest.length !== this.current.pending.length) this.setPending(rest);
  }

  private refuse(clientId: string | null, code: string, message: string): void {
    const pending = this.current.pending.map((one) =>
      one.client_id === clientId ? { ...one, refused: { code, message } } : one,
    );
    this.setPending(pending);
  }

  /** Sends again what was not acknowledged: the service takes each message once. */
  private sendPending(): void {
    for (const one of this.current.pending) if (!one.refused) this.connection.send(sendFrame(one));
  }

  private setPending(pending: readonly Pending[]): void {
    storeOutbox(this.id, pending);
    this.change({ pending });
  }

  private onStatus(status: ConnectionStatus): void {
    if (status.open) {
      clearTimeout(this.losing);
      this.losing = undefined;
      this.change({ status, lost: false });
      return;
    }
    this.losing ??= setTimeout(() => this.change({ lost: true }), LOST);
    this.change({ status: { ...status, refused: status.refused ?? this.current.status.refused } });
  }

  private change(parts: Partial<ChatSnapshot>): void {
    this.current = { ...this.current, ...parts };
    this.timer ??= setTimeout(() => this.flush(), EVERY);
  }

  /** Shows what has changed. */
  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.shown = this.current;
    for (const listener of this.listeners) listener();
  }
}
