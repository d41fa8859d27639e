import type { ReactNode } from 'react';

import type { ChatInfo, Conversation } from '../../../chat/protocol';
import { useChat } from '../../../chat/useChat';
import styles from './chat.module.css';
import { Composer } from './Composer';
import { MessageList } from './MessageList';
import { StateBanner } from './StateBanner';
import { useMessageDraft } from './useMessageDraft';

interface Props {
  id: string;
  info: ChatInfo;
  onConversation: (conversation: Conversation) => void;
}

/** An open conversation: its messages, the state of the agent, and where one writes. */
export function ChatPane({ id, info, onConversation }: Props): ReactNode {
  const chat = useChat(id, onConversation);
  const draft = useMessageDraft(id);
  const { session, snapshot } = chat;
  const { view, status } = snapshot;
  const agent = view.state?.agent;
  const canStop = view.epoch === undefined ? info.stop : view.stop;
  const halted = status.halted === 'deleted' || status.halted === 'refused';
  return (
    <div className={styles.pane}>
      <MessageList
        chat={chat}
        actions={{
          sendAgain: (clientId) => session.sendAgain(clientId),
          discard: (clientId) => session.discard(clientId),
          edit: (pending) => {
            session.discard(pending.client_id);
            draft.putBack(pending);
          },
        }}
      />
      <StateBanner chat={chat} info={info} />
      <Composer
        draft={draft}
        pictures={view.epoch === undefined ? info.pictures : view.pictures}
        turn={canStop ? (view.state?.turn ?? null) : null}
        disabled={halted || agent === 'off' || agent === 'unsupported'}
        onSend={(text, attachments) => session.send(text, attachments)}
        onStop={() => session.stop()}
      />
    </div>
  );
}
