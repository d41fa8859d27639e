import type { Connection, Joining } from './connection';
import { Election } from './election';
import { EventStream } from './event-stream';
import type { LiveMessage, TabMessage } from './messages';

/** Joins the stream of an elected tab, or is that tab. */
export function joinElection(joining: Joining): Connection {
  let member: Connection | undefined = joinOnce(joining);
  const leave = (): void => {
    member?.close();
    member = undefined;
  };
  const shown = (event: PageTransitionEvent): void => {
    if (!event.persisted || member !== undefined) return;
    member = joinOnce(joining);
    joining.tell({ type: 'lost' });
    // The page comes out of the history, and heard of nothing there.
    joining.tell({ type: 'resync' });
  };
  addEventListener('pagehide', leave);
  addEventListener('pageshow', shown);
  return {
    restart: () => member?.restart(),
    close: () => {
      removeEventListener('pagehide', leave);
      removeEventListener('pageshow', shown);
      leave();
    },
  };
}

function joinOnce({ name, url, tell }: Joining): Connection {
  const id = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  let connected = false;
  let stream: EventStream | undefined;
  const everywhere = (message: LiveMessage): void => {
    if (message.type === 'connected') connected = true;
    else if (message.type === 'lost' || message.type === 'ended') connected = false;
    election.send(message);
    tell(message);
  };
  const changed = (leads: boolean): void => {
    connected = false;
    stream?.stop();
    stream = undefined;
    if (!leads) return;
    stream = new EventStream(url, everywhere);
    stream.start();
    everywhere({ type: 'lost' });
    // No tab saw the changes between two leaders.
    everywhere({ type: 'resync' });
  };
  const received = (message: unknown): void => {
    const { type } = message as LiveMessage | TabMessage;
    if (type === 'again') stream?.wake();
    else if (type === 'hello' && connected) election.send({ type: 'connected' } satisfies LiveMessage);
    else if (type !== 'hello' && type !== 'alive' && type !== 'bye') tell(message as LiveMessage);
  };
  const election = new Election(new BroadcastChannel(name), id, changed, received);
  // Asks the leader, if there is one, whether it is connected.
  election.send({ type: 'hello', url } satisfies TabMessage);
  return {
    restart: () =>
      stream === undefined ? election.send({ type: 'again' } satisfies TabMessage) : stream.wake(),
    close: () => {
      stream?.stop();
      election.close();
    },
  };
}
