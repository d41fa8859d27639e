import type { Failure } from './failure';

let waiters: (() => void)[] = [];
let dialogs = 0;
const listeners = new Set<() => void>();

const notify = (): void => {
  for (const listener of listeners) listener();
};

/** True while requests wait for the user to sign in again. */
export function sessionHasEnded(): boolean {
  return waiters.length > 0;
}

/** Calls `listener` whenever `sessionHasEnded` changes. */
export function onSessionChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Waits until the user has signed in again. Throws `failure` where no dialog can ask. */
export async function renewSession(failure: Failure, signal?: AbortSignal): Promise<void> {
  if (dialogs === 0) throw failure;
  await new Promise<void>((resolve) => {
    waiters.push(resolve);
    notify();
  });
  signal?.throwIfAborted();
}

/** Lets a dialog ask for a new session from now on; returns the function that ends this. */
export function provideSessionDialog(): () => void {
  dialogs += 1;
  return () => {
    dialogs -= 1;
  };
}

/** Goes on with the requests that waited for a new session. */
export function sessionRenewed(): void {
  const all = waiters;
  waiters = [];
  for (const resolve of all) resolve();
  notify();
}
