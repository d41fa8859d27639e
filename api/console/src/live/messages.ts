/** Change of an object, as the server's watch stream reports it. */
export interface Change {
  object: string;
  uid: string;
  generation: number;
  observed_generation: number;
  ready: string;
  reason: string;
  status: string;
}

/** Messages of the stream's owner to all tabs. */
export type LiveMessage =
  | { type: 'connected' }
  | { type: 'lost' }
  /** There is no session any more. */
  | { type: 'ended' }
  /** The session is not that of an account that may read the stream. */
  | { type: 'refused' }
  | { type: 'resync' }
  | { type: 'change'; change: Change };

/** Messages of a tab to the shared worker. */
export type TabMessage =
  /** First message, also of a tab that comes back out of the history. */
  | { type: 'hello'; url: string }
  /** The tab is there; answered by the state of the connection. */
  | { type: 'alive' }
  | { type: 'bye' }
  /** There may be a connection again: after a sign-in, a sleep, a loss of the network. */
  | { type: 'again' };
