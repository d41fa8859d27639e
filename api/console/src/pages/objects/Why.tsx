import type { ReactNode } from 'react';

import type { Condition } from '../../api/types';
import { useReasons } from '../../i18n/reasons';
import { readyOf } from '../../modules/state';
import { visibleText } from '../../modules/visible-text';
import styles from './objects.module.css';

/** Reason of an object that is not ready, with the server's sentence. */
export function Why({ conditions }: { conditions: Condition[] }): ReactNode {
  const explain = useReasons();
  const ready = readyOf(conditions);
  if (ready === undefined || ready.status === 'True') return <span className="dim">–</span>;
  return (
    <>
      {explain(ready.reason).title}
      {ready.message !== '' && (
        <small lang="en" className={styles.message} title={ready.message}>
          {visibleText(ready.message)}
        </small>
      )}
    </>
  );
}
