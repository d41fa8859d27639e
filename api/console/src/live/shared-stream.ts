import type { Connection, Joining } from './connection';
import type { LiveMessage, TabMessage } from './messages';

const ALIVE_EVERY = 20_000;
/** The worker answers each message of a tab: one that leaves as many without an answer is gone. */
const WORKER_IS_GONE = 3;

/** Joins the stream of a shared worker. Calls `onBroken` when the worker cannot be loaded. */
export function joinWorker({ name, url, tell }: Joining, onBroken: () => void): Connection {
  let unanswered = 0;
  let missed = false;
  const open = (): SharedWorker => {
    const opened = new SharedWorker(new URL('./worker.ts', import.meta.url), { type: 'module', name });
    opened.onerror = onBroken;
    opened.port.onmessage = ({ data }: MessageEvent<LiveMessage>) => {
      unanswered = 0;
      tell(data);
      if (!missed || data.type !== 'connected') return;
      missed = false;
      tell({ type: 'resync' });
    };
    return opened;
  };
  let worker = open();
  const send = (message: TabMessage): void => worker.port.postMessage(message);
  const hello = (): void => send({ type: 'hello', url: new URL(url, location.href).href });
  const bye = (): void => send({ type: 'bye' });
  const shown = (event: PageTransitionEvent): void => {
    if (event.persisted) hello();
  };
  const reopen = (): void => {
    worker.port.close();
    tell({ type: 'lost' });
    unanswered = 0;
    missed = true;
    worker = open();
    hello();
  };
  const check = (): void => {
    if (unanswered >= WORKER_IS_GONE) {
      reopen();
      return;
    }
    unanswered += 1;
    send({ type: 'alive' });
  };
  hello();
  addEventListener('pagehide', bye);
  addEventListener('pageshow', shown);
  const timer = setInterval(check, ALIVE_EVERY);
  return {
    restart: () => send({ type: 'again' }),
    close: () => {
      clearInterval(timer);
      removeEventListener('pagehide', bye);
      removeEventListener('pageshow', shown);
      bye();
      worker.port.close();
    },
  };
}
