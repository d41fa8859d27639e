import { useSyncExternalStore } from 'react';

let now = new Date();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) {
    now = new Date();
    timer = setInterval(() => {
      now = new Date();
      for (const one of listeners) one();
    }, 1000);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) clearInterval(timer);
  };
}

/** The time in whole steps of `step` seconds: one clock for all times on the page. */
export function useNow(step = 1): Date {
  const seconds = useSyncExternalStore(subscribe, () => Math.floor(now.getTime() / 1000 / step) * step);
  return new Date(seconds * 1000);
}
