import { Button, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';

import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { chatQuery, putConversation } from '../../../api/queries/chat';
import type { Conversation } from '../../../chat/protocol';
import { DialogFrame } from '../../../components/DialogFrame';
import dialog from '../../../components/dialog.module.css';
import { useT } from '../../../i18n';
import { failureText } from '../../../i18n/failure';

interface Props {
  conversation: Conversation;
  onClose: () => void;
}

/** Longest title. */
const MOST = 200;

/** Asks for another title. */
export function RenameConversation({ conversation, onClose }: Props): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const [title, setTitle] = useState(conversation.title);
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      const body = { id: conversation.id, title: title.trim() };
      const renamed = await post<{ conversation: Conversation }>('/api/agent/chat/rename', body);
      client.setQueryData(chatQuery.queryKey, (old) => old && putConversation(old, renamed.conversation));
      onClose();
    } catch (thrown) {
      setError(failureText(Failure.from(thrown), t).text);
      setBusy(false);
    }
  };
  return (
    <DialogFrame opened title={t('chat.rename.title')} onClose={onClose}>
      <form onSubmit={(event) => void save(event)} noValidate autoComplete="off">
        <TextInput
          label={t('chat.rename.name')}
          value={title}
          error={error}
          maxLength={MOST}
          autoFocus
          data-autofocus
          onChange={(event) => {
            setTitle(event.currentTarget.value);
            setError(undefined);
          }}
        />
        <div className={dialog.buttons}>
          <Button onClick={onClose}>{t('preview.cancel')}</Button>
          <Button type="submit" variant="filled" disabled={busy || title.trim() === ''}>
            {t('chat.rename.verb')}
          </Button>
        </div>
      </form>
    </DialogFrame>
  );
}
