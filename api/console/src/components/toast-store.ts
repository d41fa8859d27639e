import { createContext, type ReactNode, use } from 'react';

import type { Failure } from '../api/failure';

/** A message about something that was done or that failed. */
export interface Toast {
  id: number;
  text: ReactNode;
  /** Link to where it goes on, such as a task. */
  link?: { href: string; text: string };
  failure?: Failure;
}

/** Shows messages of pages. */
export interface ToastActions {
  /** Says what was done; goes away by itself. */
  done: (text: ReactNode, link?: Toast['link']) => void;
  /** Says what failed; stays until it is dismissed. */
  fail: (text: ReactNode, failure: Failure) => void;
}

export const ToastContext = createContext<ToastActions>({ done: () => undefined, fail: () => undefined });

/** Shows messages. */
export function useToasts(): ToastActions {
  return use(ToastContext);
}
