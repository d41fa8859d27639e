import { createContext, use } from 'react';

import type { Failure } from '../../../api/failure';
import type { ImagePull } from '../../../api/queries/images';
import type { PullView } from './pull-view';

/** Pulls that this tab has requested, and all that are under way. */
export interface Pulls {
  /** Pulls under way and requested, as the server lists them. */
  listed: ImagePull[] | undefined;
  failure: Failure | undefined;
  /** Pulls as last read, of those that this tab has requested, by reference. */
  views: Readonly<Record<string, PullView>>;
  /** References whose pulls are being cancelled. */
  cancelling: ReadonlySet<string>;
  start: (reference: string) => void;
  cancel: (reference: string) => void;
  dismiss: (reference: string) => void;
}

const NONE: Pulls = {
  listed: undefined,
  failure: undefined,
  views: {},
  cancelling: new Set(),
  start: () => undefined,
  cancel: () => undefined,
  dismiss: () => undefined,
};

export const PullsContext = createContext<Pulls>(NONE);

/** The pulls of the pages of images. */
export function usePullsOfPage(): Pulls {
  return use(PullsContext);
}
