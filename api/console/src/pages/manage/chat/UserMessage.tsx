import { Button } from '@mantine/core';
import IconPaperclip from '@tabler/icons-react/icons/IconPaperclip';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Pending } from '../../../chat/outbox';
import type { Attachment, MessageStatus, RefusalCode } from '../../../chat/protocol';
import { Bytes } from '../../../components/Bytes';
import { type MessageKey, useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from './chat.module.css';

const STATUS: Partial<Record<MessageStatus, MessageKey>> = {
  waiting: 'chat.status.waiting',
  joined: 'chat.status.joined',
  unanswered: 'chat.status.unanswered',
  withdrawn: 'chat.status.withdrawn',
  failed: 'chat.status.failed',
};
const REFUSED: Record<string, MessageKey> = {
  too_many_waiting: 'chat.refused.too_many_waiting',
  too_long: 'chat.refused.too_long',
  empty: 'chat.refused.empty',
  too_fast: 'chat.refused.too_fast',
  bad_attachment: 'chat.refused.bad_attachment',
  quota_exceeded: 'chat.refused.quota_exceeded',
  busy: 'chat.refused.busy',
  not_running: 'chat.refused.not_running',
} satisfies Partial<Record<RefusalCode, MessageKey>>;

interface Props {
  text: string;
  attachments: Attachment[];
  /** Line below the message. */
  children?: ReactNode;
}

/** A message of the user with its files. */
export function UserMessage({ text, attachments, children }: Props): ReactNode {
  return (
    <div className={styles.mine}>
      <div className={styles.bubble}>
        {text !== '' && (
          <p className={styles.plain} dir="auto">
            {text}
          </p>
        )}
        {attachments.length > 0 && (
          <ul className={styles.attached}>
            {attachments.map(({ path, name, size }, at) => (
              <li key={at}>
                <IconPaperclip size={14} aria-hidden />
                <Link to="/manage/files/open" search={{ path }} className={styles.fileName}>
                  {visibleText(name)}
                </Link>
                {size !== null && (
                  <small>
                    <Bytes value={size} />
                  </small>
                )}
              </li>
            ))}
          </ul>
        )}
      </div>
      {children}
    </div>
  );
}

/** State of a message that is not simply sent; that of a stopped turn says it by a notice. */
export function MessageState({ status }: { status: MessageStatus }): ReactNode {
  const t = useT();
  const key = STATUS[status];
  return key && <small>{t(key)}</small>;
}

/** Actions for a message that was not taken. */
export interface PendingActions {
  sendAgain: (clientId: string) => void;
  edit: (pending: Pending) => void;
  discard: (clientId: string) => void;
}

interface PendingProps extends PendingActions {
  pending: Pending;
  connected: boolean;
}

/** A message on its way, or one that was refused with what can be done about it. */
export function PendingMessage({ pending, connected, ...actions }: PendingProps): ReactNode {
  const t = useT();
  const { text, attachments, refused, client_id: id } = pending;
  const why = refused && REFUSED[refused.code];
  return (
    <UserMessage text={text} attachments={attachments}>
      {refused === undefined ? (
        <small>{t(connected ? 'chat.status.sending' : 'chat.status.unsent')}</small>
      ) : (
        <div className={styles.refused} role="alert">
          <span className={styles.bad}>
            {t('chat.refused', { why: why === undefined ? refused.message : t(why) })}
          </span>
          <Button size="compact-sm" onClick={() => actions.sendAgain(id)}>
            {t('chat.again')}
          </Button>
          <Button size="compact-sm" onClick={() => actions.edit(pending)}>
            {t('chat.edit')}
          </Button>
          <Button size="compact-sm" variant="subtle" onClick={() => actions.discard(id)}>
            {t('chat.discard')}
          </Button>
        </div>
      )}
    </UserMessage>
  );
}
