import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';

import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { keys } from '../../../api/keys';
import type { Schemas } from '../../../api/types';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import { copyName, joinPath, nameOf, parentOf } from './paths';
import { readTextDraft, storeTextDraft } from './text-draft';

/** A text that is being edited. */
export interface TextSave {
  /** The text to begin with: what was not saved before a reload, else the file's. */
  text: string;
  /** The text as it is now. */
  latest: () => string;
  dirty: boolean;
  saving: boolean;
  failure?: Failure;
  /** The file has changed since it was read. */
  conflict: boolean;
  change: (text: string) => void;
  save: () => Promise<void>;
  /** Saves in place of the state `etag`. Returns false when the file is no longer in that state. */
  overwrite: (etag: string) => Promise<boolean>;
  /** Saves under another name beside the file, and returns its path. */
  keepBoth: () => Promise<string>;
  leaveConflict: () => void;
}

/** Saves a text file, and notices that it was changed meanwhile. */
export function useTextSave(file: Schemas['TextFile']): TextSave {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  const { path } = file;
  const [begun] = useState(() => readTextDraft(path) ?? { etag: file.etag, text: file.content });
  const current = useRef({ etag: begun.etag, saved: file.content, text: begun.text });
  const [dirty, setDirty] = useState(begun.text !== file.content);
  const [saving, setSaving] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const [conflict, setConflict] = useState(false);
  useEffect(() => {
    if (!dirty) return;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [dirty]);

  const change = (text: string): void => {
    const { etag, saved } = current.current;
    current.current.text = text;
    const changed = text !== saved;
    setDirty(changed);
    storeTextDraft(path, changed ? { etag, text } : undefined);
  };
  const saveOver = async (etag: string): Promise<boolean> => {
    const { text } = current.current;
    let stale = false;
    setSaving(true);
    setFailure(undefined);
    try {
      const saved = await post<Schemas['SavedTextFile']>('/api/files/edit', { path, content: text, etag });
      current.current = { ...current.current, etag: saved.etag, saved: text };
      client.setQueryData(keys.textFile(path), { ...file, content: text, etag: saved.etag });
      change(current.current.text);
      setConflict(false);
      toasts.done(t('editor.saved', { name: visibleText(file.filename) }));
    } catch (thrown) {
      const failed = Failure.from(thrown);
      stale = failed.code === 'stale_file';
      if (stale) setConflict(true);
      else setFailure(failed);
    }
    setSaving(false);
    return !stale;
  };
  const keepBoth = async (): Promise<string> => {
    const other = joinPath(parentOf(path), copyName(nameOf(path), new Date()));
    await post('/api/files/edit', { path: other, content: current.current.text });
    storeTextDraft(path, undefined);
    setDirty(false);
    toasts.done(t('editor.saved', { name: visibleText(nameOf(other)) }));
    return other;
  };
  return {
    text: begun.text,
    latest: () => current.current.text,
    dirty,
    saving,
    failure,
    conflict,
    change,
    save: async () => {
      if (!saving && current.current.text !== current.current.saved) await saveOver(current.current.etag);
    },
    overwrite: saveOver,
    keepBoth,
    leaveConflict: () => setConflict(false),
  };
}
