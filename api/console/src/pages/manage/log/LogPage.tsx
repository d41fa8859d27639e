import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { useSession } from '../../../app/useSession';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { LogView } from '../../../components/log/LogView';
import { useT } from '../../../i18n';
import { useContainerLog } from '../../../modules/useContainerLog';
import { SubPage } from '../SubPage';
import { useRestart } from '../useRestart';

/** The log of the user's agent, followed. */
export function LogPage(): ReactNode {
  const t = useT();
  const { username } = useSession();
  const { lines, loading, failure } = useContainerLog(username, true);
  const restart = useRestart();
  const none = failure?.code === 'not_found';
  return (
    <SubPage
      title={t('log.own.title')}
      text={t('log.own.text')}
      actions={
        <Button disabled={restart.isPending} onClick={() => restart.mutate()}>
          {restart.isPending ? t('agent.restarting') : t('agent.restart')}
        </Button>
      }
    >
      {failure && !none && <ErrorState failure={failure} />}
      {loading && <LoadingState rows={8} />}
      {none && lines.length === 0 && (
        <div className="card">
          <EmptyState title={t('log.none')} text={t('log.none.text')} />
        </div>
      )}
      {(lines.length > 0 || (!loading && failure === undefined)) && (
        <LogView lines={lines} fileName={`${username}.log`} />
      )}
    </SubPage>
  );
}
