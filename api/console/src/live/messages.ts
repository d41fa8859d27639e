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
  | { type: 'ended' }
  | { type: 'resync' }
  | { type: 'change'; change: Change };

/** Messages of a tab to the shared worker. */
export type TabMessage =
  { type: 'hello'; url: string } | { type: 'alive' } | { type: 'bye' } | { type: 'again' };
