import { Button } from '@mantine/core';
import { type ReactNode, useRef, useState } from 'react';

import { endWords } from '../../../chat/entry-words';
import type { Chat } from '../../../chat/useChat';
import { EmptyState } from '../../../components/EmptyState';
import { LoadingState } from '../../../components/LoadingState';
import { useNow } from '../../../components/useNow';
import { useT } from '../../../i18n';
import styles from './chat.module.css';
import { EntryRow } from './EntryRow';
import { OlderEntries } from './OlderEntries';
import { TurnLine } from './TurnLine';
import { type PendingActions, PendingMessage } from './UserMessage';
import { useScroll } from './useScroll';

interface Props {
  chat: Chat;
  actions: PendingActions;
}

/** Characters of a finished answer that are read out. */
const READ_OUT = 1000;

/** The messages of a conversation: earlier ones come when the reader scrolls up, new ones at the end. */
export function MessageList({ chat, actions }: Props): ReactNode {
  const t = useT();
  const frame = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { session, snapshot } = chat;
  const { view, pending, status, finished } = snapshot;
  const { entries } = view;
  const scroll = useScroll(frame, content, entries[0]?.id, pending.length);
  const [left, setLeft] = useState(0);
  const last = entries.at(-1)?.id ?? 0;
  if (scroll.atEnd && left !== last) setLeft(last);
  const today = useNow(900).setHours(0, 0, 0, 0);
  const fresh = entries.filter(({ id }) => id > left).length;
  const isKnown = view.epoch !== undefined;
  return (
    <div className={styles.listFrame}>
      {/* A region that scrolls has to be reached by keyboard. */}
      <div
        ref={frame}
        className={styles.list}
        onScroll={scroll.onScroll}
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={t('chat.log')}
        aria-busy={!isKnown}
        data-end={scroll.atEnd || undefined}
      >
        <div ref={content} className={styles.entries}>
          {!isKnown && pending.length === 0 && <LoadingState rows={6} />}
          {isKnown && entries.length + pending.length === 0 && (
            <EmptyState title={t('chat.empty')} text={t('chat.empty.text')} />
          )}
          {isKnown && <OlderEntries chat={chat} frame={frame} />}
          {entries.map((entry) => (
            <EntryRow key={entry.id} conversation={session.id} entry={entry} today={today} />
          ))}
          {pending.map((one) => (
            <PendingMessage key={one.client_id} pending={one} connected={status.open} {...actions} />
          ))}
          <TurnLine state={view.state} />
        </div>
      </div>
      {!scroll.atEnd && (
        <Button className={styles.jump} variant="filled" size="compact-sm" onClick={scroll.jump}>
          {t('chat.fresh', { count: fresh })}
        </Button>
      )}
      <div role="status" className="visually-hidden">
        {finished !== undefined && t('chat.answered', { text: endWords(finished, t).slice(0, READ_OUT) })}
      </div>
    </div>
  );
}
