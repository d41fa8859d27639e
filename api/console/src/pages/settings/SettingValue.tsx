import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import styles from './settings.module.css';

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0);

/** Value of a setting; one of several lines is shown when asked for. */
export function SettingValue({ value, isSecret }: { value: unknown; isSecret: boolean }): ReactNode {
  const t = useT();
  if (isEmpty(value))
    return <span className="dim">{t(isSecret ? 'settings.secret.none' : 'settings.empty')}</span>;
  if (Array.isArray(value)) return <code>{visibleText(value.join(', '))}</code>;
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, null, 2);
  if (!text.includes('\n')) return <code>{visibleText(text)}</code>;
  return (
    <details>
      <summary>{t('settings.show')}</summary>
      <pre className={styles.long}>{text.split('\n').map(visibleText).join('\n')}</pre>
    </details>
  );
}
