import { type FocusEvent, type ReactNode, useCallback, useMemo, useRef, useState } from 'react';

import { useT } from '../i18n';
import { type Toast, type ToastActions, ToastContext } from './toast-store';
import { ToastCard } from './ToastCard';
import styles from './toasts.module.css';

/** Messages that are shown at a time, apart from failures. */
const SHOWN = 5;

/** Leaves out the oldest messages that say that something was done; failures stay until they are dismissed. */
function limitToasts(toasts: Toast[]): Toast[] {
  let left = Math.max(0, toasts.length - SHOWN);
  return toasts.filter(({ failure }) => {
    if (failure !== undefined || left === 0) return true;
    left -= 1;
    return false;
  });
}

/** Messages in the corner: what was done goes away by itself, what failed stays until it is dismissed. */
export function Toasts({ children }: { children: ReactNode }): ReactNode {
  const t = useT();
  const [toasts, setToasts] = useState<Toast[]>([]);
  const next = useRef(0);
  const region = useRef<HTMLElement>(null);
  const before = useRef<Element>(null);
  const close = useCallback((id: number) => {
    const focused = region.current?.contains(document.activeElement) === true;
    setToasts((all) => all.filter((toast) => toast.id !== id));
    // The next message can be closed at once; after the last one the focus goes back to where it was.
    if (focused) {
      requestAnimationFrame(() => {
        const next = region.current?.querySelector<HTMLElement>('[data-close]') ?? before.current;
        if (next instanceof HTMLElement) next.focus();
      });
    }
  }, []);
  const enter = ({ relatedTarget: from }: FocusEvent<HTMLElement>): void => {
    if (from !== null && region.current?.contains(from) !== true) before.current = from;
  };
  const actions = useMemo<ToastActions>(() => {
    const add = (toast: Omit<Toast, 'id'>): void => {
      next.current += 1;
      const id = next.current;
      setToasts((all) => limitToasts([...all, { ...toast, id }]));
    };
    return {
      done: (text, link) => add({ text, link }),
      fail: (text, failure) => add({ text, failure }),
    };
  }, []);
  return (
    <ToastContext value={actions}>
      {children}
      {/* The listener only notes where the focus came from. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <section ref={region} aria-label={t('toast.region')} className={styles.region} onFocus={enter}>
        {toasts.map((toast) => (
          <ToastCard key={toast.id} toast={toast} onClose={close} />
        ))}
      </section>
    </ToastContext>
  );
}
