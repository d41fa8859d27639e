import { joinElection } from './elected-stream';
import type { LiveMessage } from './messages';
import { joinWorker } from './shared-stream';

/** A tab's part in the one stream of the browser. */
export interface Connection {
  /** Connects again if need be: after a sign-in, a sleep, a loss of the network. */
  restart: () => void;
  close: () => void;
}

/** A stream and the tab that joins it. */
export interface Joining {
  /** Same in all tabs that share the stream, and in no others: another account has its own. */
  name: string;
  url: string;
  tell: (message: LiveMessage) => void;
}

/** Joins the browser's stream: by a shared worker where there is one, else by an election among the tabs. */
export function connect(joining: Joining): Connection {
  let closed = false;
  let current = join(joining, () => {
    if (closed) return;
    current.close();
    current = joinElection(joining);
  });
  const restart = (): void => current.restart();
  const shown = (): void => {
    if (document.visibilityState === 'visible') restart();
  };
  addEventListener('online', restart);
  document.addEventListener('visibilitychange', shown);
  return {
    restart,
    close: () => {
      closed = true;
      removeEventListener('online', restart);
      document.removeEventListener('visibilitychange', shown);
      current.close();
    },
  };
}

function join(joining: Joining, onBroken: () => void): Connection {
  if (typeof SharedWorker === 'function') {
    try {
      return joinWorker(joining, onBroken);
    } catch {
      // A browser may have shared workers and refuse them to this page.
    }
  }
  return joinElection(joining);
}
