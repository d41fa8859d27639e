import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import { type Rollout, rolloutUsersQuery } from '../../api/queries/config';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { useConfigForm } from './config-form';
import styles from './config.module.css';
import { ResumeDialog } from './ResumeDialog';
import { revisionOf } from './rollout-words';

/** Why a rollout of settings has paused: the agents that failed with their last lines, and the two ways on. */
export function PausedRollout({ rollout }: { rollout: Rollout }): ReactNode {
  const t = useT();
  const { rollBack } = useConfigForm();
  const [resuming, setResuming] = useState(false);
  const { data } = useQuery(rolloutUsersQuery(rollout.id));
  const failed = data?.users.filter(({ state }) => state === 'failed') ?? [];
  const back = revisionOf(rollout.source);
  return (
    <>
      <p lang="en">{visibleText(rollout.message)}</p>
      {failed.map(({ username, message, log }) => (
        <div key={username} className={styles.failed}>
          <div>
            <Link to="/admin/users/$name" params={{ name: username }}>
              {username}
            </Link>{' '}
            <span lang="en">{visibleText(message)}</span>
          </div>
          {log.length > 0 && (
            <details className={styles.details}>
              <summary>{t('config.rollout.log', { count: log.length })}</summary>
              <pre className={styles.long}>{log.map(visibleText).join('\n')}</pre>
            </details>
          )}
        </div>
      ))}
      <div className="row">
        {back !== undefined && (
          <Button size="compact-md" variant="filled" onClick={() => rollBack(back)}>
            {t('config.rollback.button', { revision: String(back) })}
          </Button>
        )}
        <Button size="compact-md" onClick={() => setResuming(true)}>
          {t('config.rollout.resume')}…
        </Button>
      </div>
      {resuming && (
        <ResumeDialog
          rollout={rollout}
          failed={failed.map(({ username }) => username)}
          onClose={() => setResuming(false)}
        />
      )}
    </>
  );
}
