import { prefix } from '../prefix';

/** Messages between the tabs of a browser. */
type AccountMessage = { signedIn: string } | { signedOut: string };

let own: string | undefined;
let other: string | undefined;
let channel: BroadcastChannel | undefined;
const changes = new Set<() => void>();
const news = new Set<(message: AccountMessage) => void>();

/** Name of the account whose pages this tab shows. */
export function shownAccount(): string | undefined {
  return own;
}

/** Name of another account that has signed in in this browser; from then on this tab shows nothing. */
export function otherAccount(): string | undefined {
  return other;
}

/** Calls `listener` when another account has signed in. */
export function onOtherAccount(listener: () => void): () => void {
  changes.add(listener);
  return () => changes.delete(listener);
}

/** Calls `listener` when the tab's own account has signed in or out in another tab. */
export function onOwnAccount(listener: (message: AccountMessage) => void): () => void {
  news.add(listener);
  return () => news.delete(listener);
}

/** Notes whose session the browser has. Returns false when it is not that of the account shown here. */
export function noteAccount(name: string): boolean {
  if (own === undefined) {
    own = name;
    listenToTabs();
    tellTabs({ signedIn: name });
    return true;
  }
  if (name === own) return true;
  if (name !== other) {
    other = name;
    for (const listener of changes) listener();
  }
  return false;
}

/** Tells all other tabs of a sign-in or a sign-out here. */
export function tellTabs(message: AccountMessage): void {
  channel?.postMessage(message);
}

function listenToTabs(): void {
  if (typeof BroadcastChannel !== 'function') return;
  channel = new BroadcastChannel(`agentyard account ${prefix}`);
  channel.onmessage = ({ data }: MessageEvent<AccountMessage>) => {
    const name = 'signedIn' in data ? data.signedIn : data.signedOut;
    if (name === own) for (const listener of news) listener(data);
    else if ('signedIn' in data) noteAccount(name);
  };
}
