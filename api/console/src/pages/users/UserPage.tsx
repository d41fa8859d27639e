import { Link, Outlet, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { ObjectHeader } from '../../components/ObjectHeader';
import { useT } from '../../i18n';
import { applicableActions, type AskedAction } from '../../modules/users/applicable';
import { factsOfDetail } from './user-facts';
import { UserButtons } from './UserButtons';
import { UserDialogs } from '../../modules/users/UserDialogs';
import { UserMenu } from '../../modules/users/UserMenu';
import { UserSentence } from './UserSentence';
import { UserTabs } from './UserTabs';
import { useUserActions } from '../../modules/users/useUserActions';
import { useUserDetail } from './useUserDetail';
import { useUserName } from './useUserName';

/** A user: state, what is wrong and what helps, actions, and the parts of the page. */
export function UserPage(): ReactNode {
  const t = useT();
  const name = useUserName();
  const detail = useUserDetail(name);
  const { user, failure, retry, state } = detail;
  const actions = useUserActions(name, user?.health?.object ?? `container/${name}`);
  const [asked, setAsked] = useState<AskedAction>();
  const navigate = useNavigate();
  const list = <Link to="/admin/users">{t('section.users')}</Link>;
  if (failure?.status === 404) {
    return <EmptyState title={t('user.none', { name })} text={t('user.none.text')} action={list} />;
  }
  const applicable = applicableActions(factsOfDetail(detail));
  const known = user !== undefined && detail.container !== undefined;
  return (
    <>
      <ObjectHeader
        crumbs={
          <>
            {list} / {name}
          </>
        }
        name={name}
        state={state}
        actions={known && <UserButtons applicable={applicable} actions={actions} onAsk={setAsked} />}
        menu={known ? <UserMenu applicable={applicable} actions={actions} onAsk={setAsked} /> : undefined}
      />
      {failure && <ErrorState failure={failure} onRetry={retry} />}
      {user === undefined && !failure && <LoadingState rows={2} />}
      <UserSentence detail={detail} />
      <UserTabs name={name} />
      <Outlet />
      <UserDialogs
        name={name}
        action={asked}
        onClose={() => setAsked(undefined)}
        onDeleted={() => void navigate({ to: '/admin/users' })}
      />
    </>
  );
}
