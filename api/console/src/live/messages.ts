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

/** What the owner of the stream tells all tabs. */
export type LiveMessage =
  | { type: 'connected' }
  | { type: 'lost' }
  | { type: 'ended' }
  | { type: 'resync' }
  | { type: 'change'; change: Change };

/** What a tab tells the shared worker. */
export type TabMessage =
  { type: 'hello'; url: string } | { type: 'alive' } | { type: 'bye' } | { type: 'again' };
