import { CloseButton } from '@mantine/core';
import IconAlertCircle from '@tabler/icons-react/icons/IconAlertCircle';
import IconCheck from '@tabler/icons-react/icons/IconCheck';
import { type ReactNode, useEffect, useState } from 'react';

import { useT } from '../i18n';
import { failureText } from '../i18n/failure';
import type { Toast } from './toast-store';
import styles from './toasts.module.css';

const SHOWN_FOR = 7000;

interface Props {
  toast: Toast;
  onClose: (id: number) => void;
}

/** One message; a success waits while the pointer or the keyboard is on it. */
export function ToastCard({ toast, onClose }: Props): ReactNode {
  const t = useT();
  const [held, setHeld] = useState(false);
  const failed = toast.failure !== undefined;
  useEffect(() => {
    if (failed || held) return;
    const timer = setTimeout(() => onClose(toast.id), SHOWN_FOR);
    return () => clearTimeout(timer);
  }, [failed, held, onClose, toast.id]);
  const said = toast.failure && failureText(toast.failure, t);
  const Icon = failed ? IconAlertCircle : IconCheck;
  return (
    // Pointer and focus keep the message from going away; Escape is a second way to the button's action.
    // eslint-disable-next-line jsx-a11y/no-static-element-interactions
    <div
      className={styles.toast}
      data-failed={failed || undefined}
      role={failed ? 'alert' : 'status'}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
      onKeyDown={({ key }) => {
        if (key === 'Escape') onClose(toast.id);
      }}
    >
      <Icon size={18} aria-hidden className={styles.icon} />
      <div className="grow">
        <div>{toast.text}</div>
        {said && <div lang={said.lang}>{said.text}</div>}
        {said && said.lang === undefined && toast.failure?.message !== '' && (
          <small lang="en">{toast.failure?.message}</small>
        )}
        {toast.link && <a href={toast.link.href}>{toast.link.text}</a>}
      </div>
      <CloseButton data-close size="sm" aria-label={t('toast.close')} onClick={() => onClose(toast.id)} />
    </div>
  );
}
