import { type ClipboardEvent, type KeyboardEvent, type ReactNode, type Ref, useCallback } from 'react';

import { useT } from '../../../i18n';
import styles from './chat.module.css';

interface Props {
  ref: Ref<HTMLTextAreaElement>;
  text: string;
  invalid: boolean;
  hintId: string;
  onText: (text: string) => void;
  onSend: () => void;
  onFiles: (files: File[]) => void;
}

/** Code of a key that an input method handles. */
const COMPOSING = 229;

/** Field of a message: Enter sends, Shift-Enter breaks the line, an input method keeps its Enter. */
export function MessageField({ ref, text, invalid, hintId, onText, onSend, onFiles }: Props): ReactNode {
  const t = useT();
  // Its height follows the text, up to the limit of the style.
  const fit = useCallback(
    (field: HTMLTextAreaElement | null) => {
      if (field === null || CSS.supports('field-sizing', 'content')) return;
      field.rows = Math.min(8, text.split('\n').length);
    },
    [text],
  );
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    const { isComposing, keyCode } = event.nativeEvent;
    if (event.key !== 'Enter' || event.shiftKey || isComposing || keyCode === COMPOSING) return;
    event.preventDefault();
    onSend();
  };
  const onPaste = (event: ClipboardEvent): void => {
    const { files, types } = event.clipboardData;
    // A copy of a table or of text may bring a picture of it as well.
    if (files.length === 0 || types.includes('text/plain')) return;
    event.preventDefault();
    onFiles([...files]);
  };
  return (
    <textarea
      ref={(field) => {
        if (typeof ref === 'function') ref(field);
        else if (ref) ref.current = field;
        fit(field);
      }}
      className={styles.field}
      rows={1}
      value={text}
      placeholder={t('chat.input.place')}
      aria-label={t('chat.input')}
      aria-describedby={hintId}
      aria-invalid={invalid}
      onChange={(event) => onText(event.currentTarget.value)}
      onKeyDown={onKeyDown}
      onPaste={onPaste}
    />
  );
}
