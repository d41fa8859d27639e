import type { ReactNode } from 'react';

import type { Described } from '../../api/queries/users';
import styles from '../../components/detail.module.css';
import { Sentence } from '../../components/Sentence';
import { useT } from '../../i18n';
import { useReasons } from '../../i18n/reasons';
import { readyOf } from '../../modules/state';
import { visibleText } from '../../modules/visible-text';

/** Cause and remedy of an object that is not as desired; of another one that it is. */
export function ObjectSentence({ object }: { object: Described }): ReactNode {
  const t = useT();
  const explain = useReasons();
  const { conditions, failures, next_attempt_at: next, problem, since } = object;
  const ready = readyOf(conditions);
  if (ready === undefined) {
    const none = { status: 'Unknown', reason: 'Pending', message: problem ?? '', since } as const;
    return <SentenceOf condition={none} failures={failures} next={next} />;
  }
  if (ready.status !== 'True') {
    return (
      <SentenceOf condition={{ ...ready, since: ready.last_transition_at }} failures={failures} next={next} />
    );
  }
  return (
    <p className={styles.lead}>
      {explain(ready.reason).title}
      {ready.message !== '' && (
        <small lang="en" className={styles.said}>
          {visibleText(ready.message)}
        </small>
      )}
      {problem && <small className={styles.said}>{t('object.newer')}</small>}
    </p>
  );
}

function SentenceOf({
  condition,
  failures,
  next,
}: {
  condition: Parameters<typeof Sentence>[0]['condition'];
  failures: number;
  next?: string | null;
}): ReactNode {
  return (
    <div className={styles.sentence}>
      <Sentence condition={condition} failures={failures} nextAttempt={next} />
    </div>
  );
}
