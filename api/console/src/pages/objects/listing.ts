import type { Page, Schemas } from '../../api/types';
import type { Filter } from '../../components/table/FilterChip';
import type { ListState } from '../../components/table/list-state';
import type { Column } from '../../components/table/ServerTable';
import type { MessageKey, T } from '../../i18n';

/** Source of the filters and commands of a list. */
export interface ListContext {
  t: T;
  state: ListState;
  /** All reasons with their titles. */
  reasons: { value: string; text: string }[];
}

/** A list that is read only: its endpoint, its columns, its filters, and the commands that do the same. */
export interface Listing<A, R> {
  title: MessageKey;
  /** The page that it is a part of. */
  parent?: { to: string; title: MessageKey };
  /** Address of the list in the API. */
  path: string;
  /** Fields that every request has. */
  query?: Record<string, string>;
  /** Kind whose numbers stand under the title. */
  kind?: Schemas['ObjectKind'];
  /** Names of the filters, in the address and in the API. */
  filterNames?: readonly string[];
  /** The filters; one that is set by links only is shown while it is set. */
  filters?: (context: ListContext) => Filter[];
  /** Makes the request of the query, such as a time of an age. */
  prepare?: (query: Record<string, unknown>) => Record<string, unknown>;
  /** Reads a page in another way than from the address. */
  read?: (query: Record<string, unknown>, signal: AbortSignal) => Promise<A>;
  /** Says what the search acts on. */
  search?: MessageKey;
  /** The server cannot search in it. */
  hasNoSearch?: boolean;
  rows: (answer: A) => R[];
  rowId: (row: R) => string;
  columns: (t: T) => Column<R>[];
  /** First step when the list is empty. */
  none: MessageKey;
  /** Heading of the commands; without one they change the list. */
  commandsTitle?: MessageKey;
  commands: string[] | ((state: ListState) => string[]);
}

/** A listing whose types are checked where it is written and forgotten where it is shown. */
export type AnyListing = Listing<Page, object>;

/** Makes a listing of any type fit for the page that shows all of them. */
export function listing<A extends object, R extends object>(made: Listing<A, R>): AnyListing {
  return made as unknown as AnyListing;
}
