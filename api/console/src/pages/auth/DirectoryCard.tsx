import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { describeQuery } from '../../api/queries/users';
import type { Schemas } from '../../api/types';
import { DetailCard } from '../../components/DetailCard';
import { FactList } from '../../components/FactList';
import { ReasonedButton } from '../../components/ReasonedButton';
import { Sentence } from '../../components/Sentence';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { ObjectLink } from '../../modules/objects/ObjectLink';
import { readyOf } from '../../modules/state';
import styles from './auth.module.css';
import { SyncDialog } from './SyncDialog';

/** The last synchronisation with the directory, and the next one on request. */
export function DirectoryCard({ isLdap }: { isLdap: boolean }): ReactNode {
  const t = useT();
  const [asked, setAsked] = useState(false);
  const { data } = useQuery(describeQuery('directory', 'users'));
  const observed = data?.observed as Schemas['ObservedDirectory'] | null | undefined;
  const ready = readyOf(data?.conditions ?? []);
  const result = observed?.result;
  return (
    <DetailCard
      title={t('auth.directory')}
      aside={
        <ReasonedButton reason={isLdap ? undefined : t('auth.sync.not.ldap')} onClick={() => setAsked(true)}>
          {t('auth.sync')}…
        </ReasonedButton>
      }
    >
      {ready && ready.status !== 'True' && (
        <div className={styles.problem}>
          <Sentence condition={{ ...ready, since: ready.last_transition_at }} />
        </div>
      )}
      <FactList
        facts={[
          [t('auth.synced'), observed?.synced_at ? <Time at={observed.synced_at} /> : t('users.never')],
          [
            t('auth.result'),
            observed?.synced_at &&
              result &&
              t('auth.result.text', {
                users: result.users,
                added: result.added,
                changed: result.changed,
                disabled: result.disabled,
                removed: result.removed,
                groups: result.groups,
                skipped: result.skipped,
              }),
          ],
          [t('list.object'), <ObjectLink key="object" object="directory/users" />],
        ]}
      />
      {asked && <SyncDialog onClose={() => setAsked(false)} />}
    </DetailCard>
  );
}
