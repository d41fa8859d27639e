import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { type Rollout, rolloutUsersQuery } from '../../api/queries/config';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { useConfigForm } from './config-form';
import { FailedAgent } from './FailedAgent';
import { ResumeDialog } from './ResumeDialog';
import { revisionOf } from './rollout-words';

/** Reason of a paused rollout of settings: the agents that failed with their last lines, and the two ways on. */
export function PausedRollout({ rollout }: { rollout: Rollout }): ReactNode {
  const t = useT();
  const { rollBack } = useConfigForm();
  const [resuming, setResuming] = useState(false);
  const { data } = useQuery(rolloutUsersQuery(rollout.id));
  const failed = data?.users.filter(({ state }) => state === 'failed') ?? [];
  const back = revisionOf(rollout.source);
  const revision = revisionOf(rollout.reference) ?? '';
  return (
    <>
      {failed.length > 0 ? (
        <p>{t('config.rollout.failed', { count: failed.length, revision: String(revision) })}</p>
      ) : (
        <p lang="en">{visibleText(rollout.message)}</p>
      )}
      {failed.map((user) => (
        <FailedAgent key={user.username} user={user} />
      ))}
      <div className="row">
        {back !== undefined && (
          <Button size="compact-md" variant="filled" onClick={() => rollBack(back)}>
            {t('config.rollback.button', { revision: String(back) })}…
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
