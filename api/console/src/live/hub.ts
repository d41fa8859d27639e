import { EventStream } from './event-stream';
import type { LiveMessage, TabMessage } from './messages';

/** Part of MessagePort that the hub needs. */
export type TabPort = Pick<MessagePort, 'postMessage'>;

type MakeStream = (
  url: string,
  tell: (message: LiveMessage) => void,
) => Pick<EventStream, 'start' | 'stop' | 'wake'>;

/** A tab says every 20 s that it is there; browsers slow down timers of hidden tabs to one a minute. */
const TAB_IS_GONE = 180_000;

interface Tab {
  seen: number;
  /** Changes went by while the tab was away: it reads everything again once the stream is there. */
  missed: boolean;
}

/** Shares one stream among the tabs of a browser. A tab that was dropped comes back with its next message. */
export class StreamHub {
  private readonly tabs = new Map<TabPort, Tab>();
  private readonly known = new WeakSet<TabPort>();
  private stream: ReturnType<MakeStream> | undefined;
  private url = '';
  private connected = false;

  constructor(private readonly makeStream: MakeStream = (url, tell) => new EventStream(url, tell)) {}

  /** Takes a message of a tab. */
  receive(port: TabPort, message: TabMessage): void {
    if (message.type === 'bye') {
      this.drop(port);
      return;
    }
    if (message.type === 'hello') this.url = message.url;
    const tab = this.tabs.get(port);
    if (tab === undefined) this.join(port);
    else {
      tab.seen = Date.now();
      this.post(port, { type: this.connected ? 'connected' : 'lost' });
    }
    if (message.type === 'again') this.stream?.wake();
  }

  /** Drops the tabs that have been silent for too long. */
  sweep(): void {
    for (const [port, { seen }] of this.tabs) if (Date.now() - seen > TAB_IS_GONE) this.drop(port);
  }

  private join(port: TabPort): void {
    const tab: Tab = { seen: Date.now(), missed: this.known.has(port) };
    this.known.add(port);
    this.tabs.set(port, tab);
    this.stream ??= this.makeStream(this.url, (message) => this.tell(message));
    this.stream.start();
    if (this.connected) this.welcome(port, tab);
    else this.post(port, { type: 'lost' });
  }

  private drop(port: TabPort): void {
    this.tabs.delete(port);
    if (this.tabs.size > 0) return;
    this.stream?.stop();
    this.stream = undefined;
    this.connected = false;
  }

  private tell(message: LiveMessage): void {
    if (message.type === 'connected') {
      this.connected = true;
      for (const [port, tab] of this.tabs) this.welcome(port, tab);
      return;
    }
    if (message.type === 'lost' || message.type === 'ended') this.connected = false;
    for (const port of this.tabs.keys()) this.post(port, message);
  }

  private welcome(port: TabPort, tab: Tab): void {
    this.post(port, { type: 'connected' });
    if (tab.missed) this.post(port, { type: 'resync' });
    tab.missed = false;
  }

  private post(port: TabPort, message: LiveMessage): void {
    port.postMessage(message);
  }
}
