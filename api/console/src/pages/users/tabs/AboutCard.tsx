import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { ofUserQuery } from '../../../api/queries/users';
import type { Schemas } from '../../../api/types';
import { Bytes } from '../../../components/Bytes';
import { DetailCard } from '../../../components/DetailCard';
import { type Fact, FactList } from '../../../components/FactList';
import { Time } from '../../../components/Time';
import { Rich, useT } from '../../../i18n';
import { SOURCES } from '../../../modules/source-texts';
import type { UserDetail } from '../useUserDetail';

/** Facts of a user beside the state. */
export function AboutCard({ name, detail }: { name: string; detail: UserDetail }): ReactNode {
  const t = useT();
  const { user, row, observed } = detail;
  const { workspace } = (user?.observed ?? {}) as Partial<Schemas['ObservedUser']>;
  const { source } = (user?.desired ?? {}) as Partial<Schemas['DesiredUser']>;
  const isRunning = (observed as Partial<Schemas['ContainerNow']> | undefined)?.running === true;
  const { data: usage } = useQuery({
    ...ofUserQuery<Schemas['Stats']>(name, '/api/admin/container/stats', { username: name }),
    enabled: isRunning,
    retry: false,
  });
  const facts: Fact[] = [
    [t('users.source'), source && t(SOURCES[source])],
    [
      t('users.groups'),
      row &&
        (row.groups.length === 0
          ? '–'
          : row.groups.map((group, at) => (
              <span key={group}>
                {at > 0 && ', '}
                <Link to="/admin/groups/$name" params={{ name: group }}>
                  {group}
                </Link>
              </span>
            ))),
    ],
    [t('user.files'), workspace && <Bytes value={workspace.used_bytes} />],
    [
      t('user.load'),
      usage && (
        <Rich
          k="user.load.now"
          values={{
            cpu: Math.round(usage.stats.cpu_percent),
            memory: <Bytes key="memory" value={usage.stats.memory_bytes} />,
          }}
        />
      ),
    ],
    [t('user.address'), observed?.ip && <code>{observed.ip}</code>],
    [t('user.started'), isRunning && observed?.started_at && <Time at={observed.started_at} />],
    [t('users.last.login'), row && (row.last_login_at ? <Time at={row.last_login_at} /> : t('users.never'))],
    [t('user.created'), user && <Time at={user.created_at} />],
  ];
  return (
    <DetailCard title={t('user.about')}>
      <FactList facts={facts} />
    </DetailCard>
  );
}
