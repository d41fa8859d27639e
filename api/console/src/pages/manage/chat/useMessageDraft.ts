import { useCallback, useState, useSyncExternalStore } from 'react';

import type { DraftFile, DraftFiles } from '../../../chat/attachments';
import type { Pending } from '../../../chat/outbox';
import { readDraft, storeDraft } from '../../../modules/drafts';
import { draftFilesOf } from './draft-files';

/** Message that is being written; kept for each conversation over a reload. */
export interface MessageDraft {
  text: string;
  setText: (text: string) => void;
  files: DraftFiles;
  list: readonly DraftFile[];
  /** Puts a message back that was not sent. */
  putBack: (pending: Pending) => void;
}

/** Keeps the draft of a conversation; another id needs another `key`. */
export function useMessageDraft(conversation: string): MessageDraft {
  const name = `chat ${conversation}`;
  const [text, setShown] = useState(() => {
    const stored = readDraft(name);
    return typeof stored === 'string' ? stored : '';
  });
  const [files] = useState(() => draftFilesOf(conversation));
  const list = useSyncExternalStore(files.subscribe, files.list);
  const setText = useCallback(
    (next: string) => {
      setShown(next);
      storeDraft(name, next === '' ? undefined : next);
    },
    [name],
  );
  const putBack = (pending: Pending): void => {
    setText(text.trim() === '' ? pending.text : `${pending.text}\n\n${text}`);
    files.putBack(pending.attachments);
  };
  return { text, setText, files, list, putBack };
}
