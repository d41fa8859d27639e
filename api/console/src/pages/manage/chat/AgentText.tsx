import { lazy, type ReactNode, Suspense, useDeferredValue } from 'react';

import styles from './chat.module.css';

const Markdown = lazy(async () => ({ default: (await import('./Markdown')).Markdown }));

/** A text of the agent as Markdown; the plain text until the code for it is there. */
export function AgentText({ text }: { text: string }): ReactNode {
  // A growing text is formatted when there is time for it.
  const shown = useDeferredValue(text);
  return (
    <Suspense fallback={<p className={styles.plain}>{shown}</p>}>
      <Markdown text={shown} />
    </Suspense>
  );
}
