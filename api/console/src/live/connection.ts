import { Election } from './election';
import { EventStream } from './event-stream';
import type { LiveMessage, TabMessage } from './messages';

/** A tab's part in the one stream of the browser. */
export interface Connection {
  /** Connects again after a sign-in. */
  restart: () => void;
  close: () => void;
}

const ALIVE_EVERY = 20_000;

/** Joins the browser's stream of `url`: by a shared worker where there is one, else by an election among the tabs. */
export function connect(url: string, tell: (message: LiveMessage) => void): Connection {
  if (typeof SharedWorker === 'function') {
    try {
      return joinWorker(url, tell);
    } catch {
      // A browser may have shared workers and refuse them to this page.
    }
  }
  return joinElection(url, tell);
}

function joinWorker(url: string, tell: (message: LiveMessage) => void): Connection {
  const name = `agentyard ${url}`;
  const worker = new SharedWorker(new URL('./worker.ts', import.meta.url), { type: 'module', name });
  const send = (message: TabMessage): void => worker.port.postMessage(message);
  worker.port.onmessage = (event: MessageEvent<LiveMessage>) => tell(event.data);
  const hello = (): void => send({ type: 'hello', url: new URL(url, location.href).href });
  const bye = (): void => send({ type: 'bye' });
  const shown = (event: PageTransitionEvent): void => {
    if (event.persisted) hello();
  };
  hello();
  addEventListener('pagehide', bye);
  addEventListener('pageshow', shown);
  const timer = setInterval(() => send({ type: 'alive' }), ALIVE_EVERY);
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

function joinElection(url: string, tell: (message: LiveMessage) => void): Connection {
  const id = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  let leads = false;
  let connected = false;
  let stream: EventStream | undefined;
  const everywhere = (message: LiveMessage): void => {
    if (message.type === 'connected') connected = true;
    else if (message.type === 'lost' || message.type === 'ended') connected = false;
    election.send(message);
    tell(message);
  };
  const changed = (now: boolean): void => {
    leads = now;
    connected = false;
    if (now) {
      stream = new EventStream(url, everywhere);
      stream.start();
      // No tab saw the changes between two leaders.
      everywhere({ type: 'resync' });
    } else {
      stream?.stop();
      stream = undefined;
    }
  };
  const received = (message: unknown): void => {
    const { type } = message as LiveMessage | TabMessage;
    if (type === 'again') stream?.start();
    else if (type === 'hello' && connected) election.send({ type: 'connected' } satisfies LiveMessage);
    else if (type !== 'hello' && type !== 'alive' && type !== 'bye') tell(message as LiveMessage);
  };
  const election = new Election(new BroadcastChannel(`agentyard ${url}`), id, changed, received);
  // Asks the leader, if there is one, whether it is connected.
  election.send({ type: 'hello', url } satisfies TabMessage);
  const close = (): void => {
    stream?.stop();
    election.close();
  };
  addEventListener('pagehide', close);
  return {
    restart: () => (leads ? stream?.start() : election.send({ type: 'again' } satisfies TabMessage)),
    close: () => {
      removeEventListener('pagehide', close);
      close();
    },
  };
}
