import type { Conversation, EntriesPage, Entry, ServerFrame, State } from './protocol';

/** All that the page knows of a conversation. */
export interface ChatView {
  /** By id. */
  entries: readonly Entry[];
  /** The service has entries before the first one. */
  older: boolean;
  conversation: Conversation | undefined;
  state: State | undefined;
  pictures: boolean;
  stop: boolean;
  /** Position in the changes of the service, to resume from. */
  epoch: string | undefined;
  n: number;
  /** Position up to which entries are those of the first picture, not changes. */
  begun: number;
}

export const EMPTY_VIEW: ChatView = {
  entries: [],
  older: false,
  conversation: undefined,
  state: undefined,
  pictures: false,
  stop: false,
  epoch: undefined,
  n: 0,
  begun: 0,
};

/** Returns the view after a frame. */
export function applyFrame(view: ChatView, frame: ServerFrame): ChatView {
  switch (frame.type) {
    case 'hello': {
      const { epoch, reset, conversation, pictures, stop } = frame;
      const kept = reset ? { entries: [], older: frame.older, begun: frame.n } : {};
      // The entries follow one by one, in the order of their numbers: a page that is cut off before asks for all of them again.
      const n = reset ? 0 : view.n;
      return { ...view, ...kept, epoch, n, conversation, pictures, stop };
    }
    case 'entry': {
      const first = view.entries[0]?.id ?? 0;
      // A change of an entry that is not loaded comes with its page.
      const unloaded = view.older && frame.n > view.begun && frame.entry.id < first;
      return { ...view, n: frame.n, entries: unloaded ? view.entries : putEntry(view.entries, frame.entry) };
    }
    case 'remove':
      return { ...view, n: frame.n, entries: view.entries.filter(({ id }) => id !== frame.id) };
    case 'state':
      return { ...view, n: frame.n, state: frame.state };
    case 'conversation':
      return { ...view, n: frame.n, conversation: frame.conversation };
    default:
      return view;
  }
}

/** Returns the view with earlier entries; those that are there already are the newer ones. */
export function addOlder(view: ChatView, page: EntriesPage): ChatView {
  const first = view.entries[0]?.id ?? Infinity;
  const earlier = page.entries.filter(({ id }) => id < first);
  return { ...view, entries: [...earlier, ...view.entries], older: page.older && earlier.length > 0 };
}

/** Puts an entry at its place by id. */
function putEntry(entries: readonly Entry[], entry: Entry): readonly Entry[] {
  let at = entries.length;
  while (at > 0 && (entries[at - 1]?.id ?? 0) > entry.id) at -= 1;
  if (entries[at - 1]?.id === entry.id) return entries.with(at - 1, entry);
  return entries.toSpliced(at, 0, entry);
}
