import { EventStream } from './event-stream';
import type { LiveMessage, TabMessage } from './messages';

/** Part of a SharedWorker's global scope that is used here. */
interface WorkerScope {
  onconnect: ((event: MessageEvent) => void) | null;
}

/** A tab says every 20 s that it is there; browsers slow down timers of hidden tabs to one a minute. */
const TAB_IS_GONE = 180_000;

const tabs = new Map<MessagePort, number>();
let stream: EventStream | undefined;
let connected = false;

function tell(message: LiveMessage): void {
  if (message.type === 'connected') connected = true;
  if (message.type === 'lost' || message.type === 'ended') connected = false;
  for (const port of tabs.keys()) port.postMessage(message);
}

function leave(port: MessagePort): void {
  tabs.delete(port);
  if (tabs.size === 0) {
    stream?.stop();
    stream = undefined;
    connected = false;
  }
}

function receive(port: MessagePort, message: TabMessage): void {
  if (message.type === 'bye') {
    leave(port);
    return;
  }
  tabs.set(port, Date.now());
  if (message.type === 'hello') {
    stream ??= new EventStream(message.url, tell);
    if (connected) port.postMessage({ type: 'connected' } satisfies LiveMessage);
  }
  if (message.type !== 'alive') stream?.start();
}

(self as unknown as WorkerScope).onconnect = (event) => {
  const [port] = event.ports;
  if (port === undefined) return;
  port.onmessage = (received: MessageEvent<TabMessage>) => receive(port, received.data);
};

setInterval(() => {
  for (const [port, seen] of tabs) if (Date.now() - seen > TAB_IS_GONE) leave(port);
}, 60_000);
