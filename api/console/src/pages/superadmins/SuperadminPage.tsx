import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useId, useState } from 'react';

import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import { superadminQuery } from '../../api/queries/superadmins';
import { useSession } from '../../app/useSession';
import { CommandLine } from '../../components/CommandLine';
import styles from '../../components/detail.module.css';
import { DetailCard } from '../../components/DetailCard';
import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { FactList } from '../../components/FactList';
import { LoadingState } from '../../components/LoadingState';
import { ObjectHeader } from '../../components/ObjectHeader';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { PasswordCard } from '../../modules/account/PasswordCard';
import { plainWord } from '../../modules/plain-word';
import { AccountSessions } from '../../modules/users/AccountSessions';
import { SuperadminButtons } from './SuperadminButtons';
import { type AskedOfSuperadmin, SuperadminDialogs } from './SuperadminDialogs';

const route = getRouteApi('/admin/superadmins/$name');

/** An administrator: sessions, and of the own account the password. */
export function SuperadminPage(): ReactNode {
  const t = useT();
  const id = useId();
  const { name } = route.useParams();
  const { username } = useSession();
  const isOwn = username === name;
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data, error, refetch } = useQuery(superadminQuery(name));
  const [asked, setAsked] = useState<AskedOfSuperadmin>();
  const list = <Link to="/admin/superadmins">{t('section.superadmins')}</Link>;
  if (data === null) return <EmptyState title={t('superadmins.none', { name })} action={list} />;
  if (error && !data) return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={4} />;
  return (
    <>
      <ObjectHeader
        crumbs={
          <>
            {list} / {name}
          </>
        }
        name={name}
        actions={<SuperadminButtons name={name} isOwn={isOwn} onAsk={setAsked} />}
      />
      <p className={styles.lead}>{t(isOwn ? 'superadmins.is.you' : 'superadmins.is.other', { name })}</p>
      <div className={styles.columns}>
        <div className="stack">
          {isOwn && (
            <PasswordCard
              path="/api/admin/superadmins/password"
              onChanged={() => void client.invalidateQueries({ queryKey: keys.object('user', name) })}
            />
          )}
          <section aria-labelledby={id}>
            <h2 id={id} className={styles.heading}>
              {t('sessions.title')}
            </h2>
            <AccountSessions
              name={name}
              effect={isOwn ? 'superadmins.sessions.own' : 'superadmins.sessions.other'}
            />
          </section>
        </div>
        <div className="stack">
          <DetailCard title={t('user.about')}>
            <FactList
              facts={[
                [t('objects.created'), <Time key="created" at={data.created_at} />],
                [
                  t('users.last.login'),
                  data.last_login_at ? <Time at={data.last_login_at} /> : t('users.never'),
                ],
                [
                  t('section.audit'),
                  <Link key="audit" to="/admin/audit" search={{ actor: name } as never}>
                    {t('superadmins.audit', { name })}
                  </Link>,
                ],
              ]}
            />
          </DetailCard>
          <CommandLine commands={[`agentyard reset-password ${plainWord(name)} --random`]} />
        </div>
      </div>
      <SuperadminDialogs
        asked={asked}
        onClose={() => setAsked(undefined)}
        onDeleted={() => void navigate({ to: '/admin/superadmins' })}
      />
    </>
  );
}
