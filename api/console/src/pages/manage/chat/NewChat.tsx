import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { chatQuery, NEW_CONVERSATION, putConversation } from '../../../api/queries/chat';
import { makeClientId, storeOutbox } from '../../../chat/outbox';
import type { Attachment, ChatInfo, Conversation } from '../../../chat/protocol';
import { EmptyState } from '../../../components/EmptyState';
import states from '../../../components/states.module.css';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import styles from './chat.module.css';
import { Composer } from './Composer';
import { useMessageDraft } from './useMessageDraft';

/** A conversation that is begun with its first message. */
export function NewChat({ info }: { info: ChatInfo }): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const navigate = useNavigate();
  const toasts = useToasts();
  const draft = useMessageDraft(NEW_CONVERSATION);
  const [busy, setBusy] = useState(false);
  const begin = async (text: string, attachments: Attachment[]): Promise<void> => {
    const pending = { client_id: makeClientId(), text, attachments, at: new Date().toISOString() };
    setBusy(true);
    try {
      const { conversation } = await post<{ conversation: Conversation }>('/api/agent/chat/create');
      storeOutbox(conversation.id, [pending]);
      client.setQueryData(chatQuery.queryKey, (old) => old && putConversation(old, conversation));
      await navigate({ to: '/manage', search: { c: conversation.id }, replace: true });
    } catch (thrown) {
      draft.putBack(pending);
      toasts.fail(t('chat.create.failed'), Failure.from(thrown));
      setBusy(false);
    }
  };
  return (
    <div className={styles.pane}>
      <div className={styles.newChat}>
        <EmptyState title={t('chat.empty')} text={t('chat.empty.text')} />
      </div>
      {!info.model_configured && (
        <section className={`${states.sentence ?? ''} ${styles.banner ?? ''}`} data-tone="warn">
          <strong>{t('chat.state.no.model')}</strong>
          <div>{t('chat.state.no.model.help')}</div>
        </section>
      )}
      <Composer
        draft={draft}
        pictures={info.pictures}
        turn={null}
        disabled={busy}
        onSend={(text, attachments) => void begin(text, attachments)}
        onStop={() => undefined}
      />
    </div>
  );
}
