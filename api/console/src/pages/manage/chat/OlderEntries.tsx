import { Button } from '@mantine/core';
import { type ReactNode, type RefObject, useEffect, useRef } from 'react';

import type { Chat } from '../../../chat/useChat';
import { useT } from '../../../i18n';
import styles from './chat.module.css';

/** Earlier entries are read when the reader comes this near to the first one. */
const AHEAD = '1500px 0px 0px 0px';

interface Props {
  chat: Chat;
  frame: RefObject<HTMLDivElement | null>;
}

/** Begin of the list: reads earlier entries as soon as it comes near, or says that there are none. */
export function OlderEntries({ chat, frame }: Props): ReactNode {
  const t = useT();
  const mark = useRef<HTMLDivElement>(null);
  const { session, snapshot } = chat;
  const { view, loadingOlder, olderFailed } = snapshot;
  const first = view.entries[0]?.id;
  const isWaiting = view.older && !loadingOlder && !olderFailed;
  useEffect(() => {
    if (mark.current === null || !isWaiting) return;
    // Observed anew after each page: a short one leaves the begin in sight.
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting === true) void session.loadOlder();
      },
      { root: frame.current, rootMargin: AHEAD },
    );
    observer.observe(mark.current);
    return () => observer.disconnect();
  }, [session, frame, isWaiting, first]);
  return (
    <div ref={mark} className={styles.begin}>
      {olderFailed && <span>{t('chat.older.failed')} </span>}
      {view.older && !loadingOlder && (
        <Button size="compact-sm" variant="subtle" onClick={() => void session.loadOlder()}>
          {t('chat.older')}
        </Button>
      )}
      {loadingOlder && <small>{t('chat.older.loading')}</small>}
      {!view.older && first !== undefined && <small>{t('chat.beginning')}</small>}
    </div>
  );
}
