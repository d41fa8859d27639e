import { StreamHub } from './hub';
import type { TabMessage } from './messages';

/** Part of a SharedWorker's global scope that is used here. */
interface WorkerScope {
  onconnect: ((event: MessageEvent) => void) | null;
}

const hub = new StreamHub();

(self as unknown as WorkerScope).onconnect = (event) => {
  const [port] = event.ports;
  if (port === undefined) return;
  port.onmessage = (received: MessageEvent<TabMessage>) => hub.receive(port, received.data);
};

setInterval(() => hub.sweep(), 60_000);
