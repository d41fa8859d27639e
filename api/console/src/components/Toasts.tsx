import { type ReactNode, useCallback, useMemo, useRef, useState } from 'react';

import { useT } from '../i18n';
import { type Toast, type ToastActions, ToastContext } from './toast-store';
import { ToastCard } from './ToastCard';
import styles from './toasts.module.css';

/** Messages in the corner: what was done goes away by itself, what failed stays until it is dismissed. */
export function Toasts({ children }: { children: ReactNode }): ReactNode {
  const t = useT();
  const [toasts, setToasts] = useState<Toast[]>([]);
  const next = useRef(0);
  const close = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const actions = useMemo<ToastActions>(() => {
    const add = (toast: Omit<Toast, 'id'>): void => {
      next.current += 1;
      const id = next.current;
      setToasts((all) => [...all.slice(-4), { ...toast, id }]);
    };
    return {
      done: (text, link) => add({ text, link }),
      fail: (text, failure) => add({ text, failure }),
    };
  }, []);
  return (
    <ToastContext value={actions}>
      {children}
      <section aria-label={t('toast.region')} className={styles.region}>
        {toasts.map((toast) => (
          <ToastCard key={toast.id} toast={toast} onClose={close} />
        ))}
      </section>
    </ToastContext>
  );
}
