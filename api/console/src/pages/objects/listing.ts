import type { Page, Schemas } from '../../api/types';
import type { Column } from '../../components/table/ServerTable';
import type { MessageKey, T } from '../../i18n';

/** A read-only list: its endpoint, its columns, and the commands that change what it shows. */
export interface Listing<A, R> {
  title: MessageKey;
  /** Address of the list in the API. */
  path: string;
  /** Fields that every request has. */
  query?: Record<string, string>;
  /** Kind whose numbers stand under the title. */
  kind?: Schemas['ObjectKind'];
  /** The server can leave out what is ready. */
  filtersReady?: boolean;
  /** The answer is whole: no search, no pages. */
  isWhole?: boolean;
  rows: (answer: A) => R[];
  rowId: (row: R) => string;
  columns: (t: T) => Column<R>[];
  /** First step when the list is empty. */
  none: MessageKey;
  commands: string[];
}

/** A listing whose types are checked where it is written and forgotten where it is shown. */
export type AnyListing = Listing<Page, object>;

/** Makes a listing of any type fit for the page that shows all of them. */
export function listing<A extends object, R extends object>(made: Listing<A, R>): AnyListing {
  return made as unknown as AnyListing;
}
