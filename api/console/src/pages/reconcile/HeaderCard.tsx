import type { ReactNode } from 'react';

import type { Described } from '../../api/queries/users';
import { DetailCard } from '../../components/DetailCard';
import { FactList } from '../../components/FactList';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';

/** Facts that each object has. */
export function HeaderCard({ object }: { object: Described }): ReactNode {
  const t = useT();
  const { kind, uid, created_at: created, deleted_at: deleted, failures, finalizers, paused, since } = object;
  return (
    <DetailCard title={t('user.about')}>
      <FactList
        facts={[
          [t('object.kind'), kind],
          [t('object.id'), <code key="uid">{uid}</code>],
          [t('objects.created'), <Time key="created" at={created} />],
          [t('object.deleted'), deleted && <Time at={deleted} />],
          [t('object.paused'), paused && t('user.yes')],
          [t('object.since'), since && <Time at={since} as="exact" />],
          [t('object.failures'), failures > 0 && failures],
          [t('object.finalizers'), finalizers.join(', ')],
        ]}
      />
    </DetailCard>
  );
}
