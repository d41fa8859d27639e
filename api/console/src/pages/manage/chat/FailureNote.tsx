import type { ReactNode } from 'react';

import { failureWords, noticeWords } from '../../../chat/entry-words';
import type { FailureEntry, NoticeEntry } from '../../../chat/protocol';
import states from '../../../components/states.module.css';
import { useT } from '../../../i18n';
import styles from './chat.module.css';

/** What failed, what helps, and what was said about it. */
export function FailureNote({ entry }: { entry: FailureEntry }): ReactNode {
  const t = useT();
  const [title, help] = failureWords(entry.code);
  return (
    <section className={states.sentence} data-tone="bad">
      <strong>{t(title)}</strong>
      <div>{t(help)}</div>
      {entry.text !== '' && (
        <details className={styles.said}>
          <summary>{t('chat.failure.said')}</summary>
          <pre lang="en" dir="ltr">
            {entry.text}
          </pre>
        </details>
      )}
    </section>
  );
}

/** A small line about what happened to a turn. */
export function NoticeLine({ entry }: { entry: NoticeEntry }): ReactNode {
  const t = useT();
  return <p className={styles.notice}>{noticeWords(entry, t)}</p>;
}
