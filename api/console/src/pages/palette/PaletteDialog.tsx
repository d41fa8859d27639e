import { Link, useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';

import { DialogFrame } from '../../components/DialogFrame';
import { useT } from '../../i18n';
import { PALETTE_KINDS } from './palette-items';
import styles from './palette.module.css';
import { usePaletteItems } from './usePaletteItems';

const PAUSE = 200;

/** Dialog that finds pages, users, groups, images, skills and settings by their names and opens one. */
export function PaletteDialog({ onClose }: { onClose: () => void }): ReactNode {
  const t = useT();
  const id = useId();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const [words, setWords] = useState('');
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const items = usePaletteItems(words);
  const active = Math.min(chosen, items.length - 1);
  useEffect(() => {
    const timer = setTimeout(() => setWords(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  const onKeyDown = (event: KeyboardEvent): void => {
    // Enter ends a composed word first.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const item = items[active];
    if (step !== undefined && items.length > 0) setChosen((active + step + items.length) % items.length);
    else if (event.key === 'Enter' && item !== undefined) {
      onClose();
      void navigate(item.link);
    } else return;
    event.preventDefault();
  };
  return (
    <DialogFrame opened size={560} title={t('palette.title')} onClose={onClose}>
      <input
        className={styles.field}
        role="combobox"
        aria-expanded
        aria-controls={id}
        aria-activedescendant={items.length > 0 ? `${id}-${active}` : undefined}
        aria-label={t('palette.hint')}
        placeholder={t('palette.hint')}
        data-autofocus
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id={id} role="listbox" aria-label={t('palette.title')} className={styles.list}>
        {items.map((item, at) => (
          <Link
            key={`${item.kind} ${item.alias ?? item.text}`}
            {...item.link}
            id={`${id}-${at}`}
            role="option"
            aria-selected={at === active}
            tabIndex={-1}
            preload={false}
            className={styles.item}
            onClick={onClose}
          >
            <span className={styles.kind}>{t(PALETTE_KINDS[item.kind])}</span>
            <span className={styles.text}>{item.text}</span>
            {item.hint !== undefined && <small className={styles.hint}>{item.hint}</small>}
          </Link>
        ))}
      </div>
      {items.length === 0 && words === text && (
        <p className="dim" role="status">
          {t('palette.none')}
        </p>
      )}
    </DialogFrame>
  );
}
