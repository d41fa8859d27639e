import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { loginModeQuery } from '../../../api/queries/session';
import { useSession } from '../../../app/useSession';
import { useT } from '../../../i18n';
import { SubPage } from '../SubPage';
import { LookCard } from './LookCard';
import { PasswordCard } from './PasswordCard';
import { SessionsCard } from './SessionsCard';

/** Password, sessions, language and theme of the user. */
export function AccountPage(): ReactNode {
  const t = useT();
  const { username, auth_mode: mode } = useSession();
  const { data } = useQuery(loginModeQuery);
  const provider = data?.provider.display_name ?? '';
  return (
    <SubPage
      title={t('account.title')}
      text={
        mode === 'local' || provider === ''
          ? t('account.signed.in', { name: username })
          : t('account.managed', { name: username, provider })
      }
    >
      {mode === 'local' && <PasswordCard />}
      <SessionsCard />
      <LookCard />
    </SubPage>
  );
}
