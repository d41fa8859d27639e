import { Button } from '@mantine/core';
import IconPaperclip from '@tabler/icons-react/icons/IconPaperclip';
import IconPlayerStop from '@tabler/icons-react/icons/IconPlayerStop';
import IconSend from '@tabler/icons-react/icons/IconSend';
import { type ChangeEvent, type ReactNode, useId, useRef } from 'react';

import { type Attachment, MOST_ATTACHMENTS, MOST_CHARACTERS, type Turn } from '../../../chat/protocol';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import styles from './chat.module.css';
import { DraftFileList } from './DraftFileList';
import { FileDrop } from './FileDrop';
import { MessageField } from './MessageField';
import type { MessageDraft } from './useMessageDraft';

interface Props {
  draft: MessageDraft;
  pictures: boolean;
  /** The agent works, and can be stopped. */
  turn: Turn | null;
  disabled?: boolean;
  onSend: (text: string, attachments: Attachment[]) => void;
  onStop: () => void;
}

/** Characters before the limit from which the rest is counted. */
const COUNTED = 5000;

/** Where a message is written: text, files, send and stop. */
export function Composer({ draft, pictures, turn, disabled = false, onSend, onStop }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const hint = useId();
  const input = useRef<HTMLInputElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const { text, files, list } = draft;
  // The limit counts characters, not the halves of those beyond the first plane.
  const length = text.length > MOST_CHARACTERS - COUNTED ? [...text].length : text.length;
  const isTooLong = length > MOST_CHARACTERS;
  const isUploading = list.some(({ state }) => state === 'sending');
  const left = MOST_CHARACTERS - length;
  let note = isUploading ? t('chat.send.uploading') : undefined;
  if (isTooLong) note = t('chat.input.long', { count: length, most: MOST_CHARACTERS });
  else if (left < COUNTED) note = t('chat.input.left', { count: left });
  const isEmpty = text.trim() === '' && !list.some(({ state }) => state === 'done');
  const canSend = !disabled && !isTooLong && !isUploading && !isEmpty;
  const send = (): void => {
    if (!canSend) return;
    onSend(text.trim(), files.take());
    draft.setText('');
    field.current?.focus();
  };
  const add = (added: File[]): void => {
    if (!files.add(added)) toasts.done(t('chat.attach.many', { most: MOST_ATTACHMENTS }));
  };
  const choose = ({ currentTarget }: ChangeEvent<HTMLInputElement>): void => {
    add([...(currentTarget.files ?? [])]);
    // The same file can be chosen again.
    currentTarget.value = '';
  };
  return (
    <FileDrop onFiles={add} className={styles.composer}>
      <DraftFileList files={files} list={list} pictures={pictures} />
      <MessageField
        ref={field}
        text={text}
        invalid={isTooLong}
        hintId={hint}
        onText={draft.setText}
        onSend={send}
        onFiles={add}
      />
      <div className={styles.composerFoot}>
        <Button
          size="compact-md"
          variant="subtle"
          color="gray"
          leftSection={<IconPaperclip size={16} aria-hidden />}
          disabled={list.length >= MOST_ATTACHMENTS}
          onClick={() => input.current?.click()}
        >
          {t('chat.attach')}
        </Button>
        <input ref={input} type="file" multiple hidden onChange={choose} aria-label={t('chat.attach')} />
        <small
          id={hint}
          className={styles.hint}
          data-bad={isTooLong || undefined}
          data-usual={note === undefined || undefined}
        >
          {note ?? t('chat.input.hint')}
        </small>
        {turn && (
          <Button
            leftSection={<IconPlayerStop size={16} aria-hidden />}
            disabled={turn.stopping}
            onClick={onStop}
          >
            {t(turn.stopping ? 'chat.stopping' : 'chat.stop')}
          </Button>
        )}
        <Button
          variant="filled"
          leftSection={<IconSend size={16} aria-hidden />}
          disabled={!canSend}
          onClick={send}
        >
          {t('chat.send')}
        </Button>
      </div>
    </FileDrop>
  );
}
