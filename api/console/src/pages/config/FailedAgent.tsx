import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { useReasons } from '../../i18n/reasons';
import { visibleText } from '../../modules/visible-text';
import styles from './config.module.css';
import { LongText } from './LongText';
import { splitMessage } from './rollout-words';

/** An agent that is not ready with new settings: why, and its last lines. */
export function FailedAgent({ user }: { user: Schemas['RolloutUser'] }): ReactNode {
  const explain = useReasons();
  const { username, log } = user;
  const { reason, text } = splitMessage(user.message, log.length > 0);
  const { title, remedy } = explain(reason);
  return (
    <div className={styles.failed}>
      <div>
        <Link className={styles.textLink} to="/admin/users/$name" params={{ name: username }}>
          {username}
        </Link>{' '}
        {reason !== '' && <strong>{title}</strong>}
      </div>
      <div lang="en">{visibleText(text)}</div>
      {reason !== '' && remedy !== '' && <div>{remedy}</div>}
      {log.length > 0 && <LongText text={log.join('\n')} />}
      {reason !== '' && <small>{reason}</small>}
    </div>
  );
}
