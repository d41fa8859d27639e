import { type ReactNode, useEffect, useRef, useState } from 'react';

import { useT } from '../../i18n';
import styles from './table.module.css';

interface Props {
  value: string;
  label?: string;
  onChange: (value: string) => void;
}

const PAUSE = 250;

/** Field that filters while typing; composed text counts when it is complete. */
export function SearchField({ value, label, onChange }: Props): ReactNode {
  const t = useT();
  const [text, setText] = useState(value);
  const [known, setKnown] = useState(value);
  const composing = useRef(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  if (known !== value) {
    setKnown(value);
    if (value !== text.trim()) setText(value);
  }
  useEffect(() => () => clearTimeout(timer.current), []);
  const later = (next: string): void => {
    clearTimeout(timer.current);
    if (!composing.current) timer.current = setTimeout(() => onChange(next.trim()), PAUSE);
  };
  const said = label ?? t('table.search');
  return (
    <input
      type="search"
      className={styles.search}
      aria-label={said}
      placeholder={said}
      value={text}
      autoComplete="off"
      spellCheck={false}
      onCompositionStart={() => {
        composing.current = true;
      }}
      onCompositionEnd={(event) => {
        composing.current = false;
        later(event.currentTarget.value);
      }}
      onChange={(event) => {
        setText(event.currentTarget.value);
        later(event.currentTarget.value);
      }}
    />
  );
}
