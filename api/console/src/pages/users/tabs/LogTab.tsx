import type { ReactNode } from 'react';

import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { LogView } from '../../../components/log/LogView';
import { useT } from '../../../i18n';
import { useContainerLog } from '../../../modules/useContainerLog';
import { useUserDetail } from '../useUserDetail';
import { useUserName } from '../useUserName';
import { LastEnds } from '../../../modules/objects/LastEnds';

/** The log of a user's container, followed, and how the previous ones ended. */
export function LogTab(): ReactNode {
  const name = useUserName();
  return <UserLog key={name} name={name} />;
}

function UserLog({ name }: { name: string }): ReactNode {
  const t = useT();
  const { lines, loading, failure } = useContainerLog(name);
  const { observed } = useUserDetail(name);
  const none = failure?.code === 'not_found';
  return (
    <div className="stack">
      {failure && !none && <ErrorState failure={failure} />}
      {loading && <LoadingState rows={8} />}
      {none && lines.length === 0 && (
        <div className="card">
          <EmptyState title={t('user.log.none')} text={t('user.log.none.text')} />
        </div>
      )}
      {(lines.length > 0 || (!loading && failure === undefined)) && (
        <LogView lines={lines} fileName={`${name}.log`} />
      )}
      <LastEnds ends={observed?.ends ?? []} />
    </div>
  );
}
