let seen = false;
const listeners = new Set<() => void>();

/** Notes when a part of the page is gone from the server: a newer release is there. */
export function noticeNewVersion(): void {
  addEventListener('vite:preloadError', () => {
    if (seen) return;
    seen = true;
    for (const listener of listeners) listener();
  });
}

/** True once a newer release was noticed. */
export function hasNewVersion(): boolean {
  return seen;
}

/** Calls `listener` when a newer release is noticed. */
export function onNewVersion(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
