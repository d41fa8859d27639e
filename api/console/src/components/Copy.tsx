import { Button } from '@mantine/core';
import IconCheck from '@tabler/icons-react/icons/IconCheck';
import IconCopy from '@tabler/icons-react/icons/IconCopy';
import { type ReactNode, useEffect, useRef, useState } from 'react';

import { useT } from '../i18n';
import { copyText } from './copy-text';
import styles from './copy.module.css';

interface Props {
  /** The text, or how it is made when it is asked for. */
  text: string | (() => Promise<string>);
  label?: string;
}

/** Button that copies a text; when the browser refuses, the text is shown selected. */
export function Copy({ text, label }: Props): ReactNode {
  const t = useT();
  const [result, setResult] = useState<'copied' | 'failed'>();
  const [shown, setShown] = useState('');
  const frame = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (result !== 'copied') return;
    const timer = setTimeout(() => setResult(undefined), 2500);
    return () => clearTimeout(timer);
  }, [result]);
  const copy = async (): Promise<void> => {
    const value = typeof text === 'string' ? text : await text();
    const copied = frame.current !== null && copyText(value, frame.current);
    setShown(copied ? '' : value);
    setResult(copied ? 'copied' : 'failed');
  };
  return (
    <span ref={frame} className={styles.copy}>
      <Button
        size="compact-sm"
        leftSection={
          result === 'copied' ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />
        }
        onClick={() => void copy()}
      >
        {result === 'copied' ? t('copy.copied') : (label ?? t('copy.copy'))}
      </Button>
      <span role="status" className={result === 'failed' ? styles.failed : 'visually-hidden'}>
        {result === 'copied' && t('copy.copied')}
        {result === 'failed' && t('copy.failed')}
      </span>
      {result === 'failed' && (
        <textarea
          className={styles.field}
          aria-label={t('copy.field')}
          readOnly
          value={shown}
          ref={(field) => {
            field?.focus();
            field?.select();
          }}
        />
      )}
    </span>
  );
}
