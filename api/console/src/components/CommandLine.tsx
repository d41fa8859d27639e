import { type ReactNode, useId } from 'react';

import { useT } from '../i18n';
import { Copy } from './Copy';
import styles from './copy.module.css';

/** The commands that do the same as the page. */
export function CommandLine({ commands, title }: { commands: string[]; title?: string }): ReactNode {
  const t = useT();
  const id = useId();
  const text = commands.join('\n');
  return (
    <section className={`card ${styles.terminal ?? ''}`} aria-labelledby={id}>
      <h2 id={id}>{title ?? t('terminal.title')}</h2>
      <div className={styles.command}>
        <pre>{text}</pre>
        <Copy text={text} />
      </div>
    </section>
  );
}
