import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';

import { Failure } from '../../../api/failure';
import { useT } from '../../../i18n';
import { failureText } from '../../../i18n/failure';
import styles from './files.module.css';
import { extensionOf, isName } from './paths';

interface Props {
  name: string;
  onClose: () => void;
  /** Throws a Failure, which is shown below the field. */
  onRename: (name: string) => Promise<void>;
}

/** Milliseconds until a menu that closes has given the focus back. */
const AFTER_MENU = 50;

/** Field in place of a file's name: Enter renames, Escape leaves it as it was. */
export function RenameField({ name, onClose, onRename }: Props): ReactNode {
  const t = useT();
  const id = useId();
  const [value, setValue] = useState(name);
  const [error, setError] = useState<string>();
  const field = useRef<HTMLInputElement>(null);
  const busy = useRef(false);
  useEffect(() => {
    // The menu gives the focus back to its button when it closes: the field takes it afterwards.
    const timer = setTimeout(() => field.current?.focus(), AFTER_MENU);
    return () => clearTimeout(timer);
  }, []);
  const save = async (): Promise<void> => {
    if (busy.current) return;
    if (value === name) {
      onClose();
      return;
    }
    if (!isName(value)) {
      setError(t('files.name.bad'));
      return;
    }
    busy.current = true;
    try {
      await onRename(value);
      onClose();
    } catch (thrown) {
      setError(failureText(Failure.from(thrown), t).text);
    }
    busy.current = false;
  };
  const press = (event: KeyboardEvent): void => {
    const composing = event.nativeEvent.isComposing || event.keyCode === 229;
    if (event.key === 'Enter' && !composing) {
      event.preventDefault();
      void save();
    } else if (event.key === 'Escape') onClose();
  };
  return (
    <span className={styles.rename}>
      <input
        ref={field}
        className={styles.renameField}
        aria-label={t('files.rename.label', { name })}
        aria-invalid={error !== undefined}
        aria-describedby={error === undefined ? undefined : id}
        value={value}
        spellCheck={false}
        autoComplete="off"
        onFocus={(event) => {
          const extension = extensionOf(name);
          const end = extension === '' ? name.length : name.length - extension.length - 1;
          event.currentTarget.setSelectionRange(0, end);
        }}
        onChange={(event) => setValue(event.currentTarget.value)}
        onKeyDown={press}
        onBlur={() => {
          if (error === undefined) void save();
          else onClose();
        }}
      />
      {error !== undefined && (
        <small id={id} role="alert" className={styles.bad}>
          {error}
        </small>
      )}
    </span>
  );
}
