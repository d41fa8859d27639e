import type { ReactNode } from 'react';

import { useReasons } from '../../i18n/reasons';
import { readFailure } from './failure-reason';
import styles from './rollouts.module.css';

/** Reason why a user could not be moved: in the page's language where the reason is known, then in the server's words. */
export function FailureReason({
  message,
  isShort = false,
}: {
  message: string;
  isShort?: boolean;
}): ReactNode {
  const explain = useReasons();
  const { reason, text } = readFailure(message);
  if (reason === undefined)
    return (
      <span lang="en" className={isShort ? styles.message : undefined} title={isShort ? message : undefined}>
        {text}
      </span>
    );
  const words = (
    <small lang="en" className={isShort ? styles.message : undefined} title={isShort ? message : undefined}>
      {text}
    </small>
  );
  if (isShort)
    return (
      <>
        {explain(reason).title} {words}
      </>
    );
  return (
    <div>
      {explain(reason).title}
      <div>{words}</div>
      <small>{reason}</small>
    </div>
  );
}
