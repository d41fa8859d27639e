import { Button, Drawer } from '@mantine/core';
import IconMessages from '@tabler/icons-react/icons/IconMessages';
import { useQueryClient } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import { type ReactNode, useCallback, useState } from 'react';

import { chatQuery, NEW_CONVERSATION, putConversation } from '../../../api/queries/chat';
import type { ChatOverview, Conversation } from '../../../chat/protocol';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from './chat.module.css';
import { ChatPane } from './ChatPane';
import { ConversationList } from './ConversationList';
import { NewChat } from './NewChat';

interface Props {
  overview: ChatOverview;
  /** Id of the open conversation. */
  shown: string;
  /** The address names it. */
  isChosen: boolean;
}

/** Conversations on the left, the open one on the right; on a phone the list is a drawer. */
export function ChatFrame({ overview, shown, isChosen }: Props): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const close = (): void => setOpen(false);
  const onConversation = useCallback(
    (conversation: Conversation) => {
      client.setQueryData(chatQuery.queryKey, (old) => old && putConversation(old, conversation));
    },
    [client],
  );
  const title = overview.conversations.find(({ id }) => id === shown)?.title ?? '';
  return (
    <div className={`card ${styles.chat ?? ''}`}>
      {/* The order of the list changes, the open conversation must not. */}
      {!isChosen && shown !== NEW_CONVERSATION && <Navigate to="/manage" search={{ c: shown }} replace />}
      <div className={styles.side}>
        <ConversationList overview={overview} shown={shown} />
      </div>
      <div className={styles.main}>
        <div className={styles.head}>
          <Button
            size="compact-md"
            leftSection={<IconMessages size={16} aria-hidden />}
            onClick={() => setOpen(true)}
          >
            <span className="visually-hidden">{t('chat.conversations')}: </span>
            <span className={styles.title}>{visibleText(title) || t('chat.untitled')}</span>
          </Button>
        </div>
        {shown === NEW_CONVERSATION ? (
          <NewChat info={overview.chat} />
        ) : (
          <ChatPane key={shown} id={shown} info={overview.chat} onConversation={onConversation} />
        )}
      </div>
      <Drawer
        opened={open}
        onClose={close}
        size={300}
        title={t('chat.conversations')}
        closeButtonProps={{ 'aria-label': t('dialog.close') }}
      >
        <ConversationList overview={overview} shown={shown} onChoose={close} />
      </Drawer>
    </div>
  );
}
