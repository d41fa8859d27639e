import { Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { chatQuery } from '../../../api/queries/chat';
import { storeOutbox } from '../../../chat/outbox';
import { DialogFrame } from '../../../components/DialogFrame';
import dialog from '../../../components/dialog.module.css';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import { storeDraft } from '../../../modules/drafts';

interface Props {
  id: string;
  title: string;
  onClose: () => void;
}

/** Says what goes with a conversation before it is deleted. */
export function DeleteConversation({ id, title, onClose }: Props): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const navigate = useNavigate();
  const toasts = useToasts();
  const { c: shown }: { c?: unknown } = useSearch({ strict: false });
  const remove = useMutation({
    mutationFn: () => post('/api/agent/chat/delete', { id }),
    onSuccess: async () => {
      storeOutbox(id, []);
      storeDraft(`chat ${id}`, undefined);
      client.setQueryData(
        chatQuery.queryKey,
        (old) => old && { ...old, conversations: old.conversations.filter((one) => one.id !== id) },
      );
      toasts.done(t('chat.deleted', { title }));
      onClose();
      if (shown === id) await navigate({ to: '/manage', search: {}, replace: true });
    },
    onError: (thrown) => toasts.fail(t('chat.delete.failed'), Failure.from(thrown)),
    onSettled: () => client.invalidateQueries({ queryKey: chatQuery.queryKey }),
  });
  return (
    <DialogFrame opened title={t('chat.delete.title', { title })} onClose={onClose}>
      <p>{t('chat.delete.text')}</p>
      <div className={dialog.buttons}>
        <Button data-autofocus onClick={onClose}>
          {t('preview.cancel')}
        </Button>
        <Button variant="filled" color="bad" disabled={remove.isPending} onClick={() => remove.mutate()}>
          {t('chat.delete.verb')}
        </Button>
      </div>
    </DialogFrame>
  );
}
