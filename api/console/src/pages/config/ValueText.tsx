import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { MASK } from '../../modules/settings';
import styles from './config.module.css';
import { LongText } from './LongText';
import { isEmptyValue, lineOf } from './value-line';

interface Props {
  /** undefined: there is none; null: the default. */
  value: unknown;
  /** The default, which is said for null. */
  usual?: unknown;
}

/** Value of a setting; one of several lines is shown when asked for. */
export function ValueText({ value, usual }: Props): ReactNode {
  const t = useT();
  if (value === undefined) return <span className="dim">{t('config.value.none')}</span>;
  if (value === null) {
    const line = lineOf(usual, t);
    const text =
      line === undefined ? t('config.value.default') : t('config.value.default.is', { value: line });
    return <span>{text}</span>;
  }
  if (value === MASK) return <span>{t('config.value.secret')}</span>;
  if (isEmptyValue(value)) return <span className="dim">{t('config.value.empty')}</span>;
  const line = lineOf(value, t);
  if (line !== undefined) return <code>{line}</code>;
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, null, 2);
  return (
    <details className={styles.details}>
      <summary>{t('config.value.show')}</summary>
      <LongText text={text} />
    </details>
  );
}
