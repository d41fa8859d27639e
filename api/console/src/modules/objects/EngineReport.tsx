import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { get } from '../../api/client';
import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import type { Schemas } from '../../api/types';
import { DetailCard } from '../../components/DetailCard';
import { ErrorState } from '../../components/ErrorState';
import { FactList } from '../../components/FactList';
import { LoadingState } from '../../components/LoadingState';
import { useT } from '../../i18n';
import { useFactNames } from '../../i18n/facts';
import { FactValue } from './FactValue';

/** All that the engine reports of a user's container, asked for when it is opened. */
export function EngineReport({ name }: { name: string }): ReactNode {
  const t = useT();
  const nameOf = useFactNames();
  const [open, setOpen] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: [...keys.object('container', name), 'inspect'],
    queryFn: ({ signal }) =>
      get<Schemas['Inspected']>('/api/admin/container/inspect', { username: name }, { signal }),
    enabled: open,
    retry: false,
  });
  return (
    <DetailCard title={t('object.engine')}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{t('object.show')}</summary>
        {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
        {!data && !error && <LoadingState rows={6} />}
        {data && (
          <FactList
            facts={Object.entries(data.container).map(([key, value]) => [
              nameOf(key),
              <FactValue key={key} name={key} value={value} />,
            ])}
          />
        )}
      </details>
    </DetailCard>
  );
}
