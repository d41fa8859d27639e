import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { ownSessionsQuery } from '../../../api/queries/own';
import { loginModeQuery } from '../../../api/queries/session';
import { useSession } from '../../../app/useSession';
import { useT } from '../../../i18n';
import { PasswordCard } from '../../../modules/account/PasswordCard';
import { SubPage } from '../SubPage';
import { LookCard } from './LookCard';
import { SessionsCard } from './SessionsCard';

/** Password, sessions, language and theme of the user. */
export function AccountPage(): ReactNode {
  const t = useT();
  const client = useQueryClient();
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
      {mode === 'local' && (
        <PasswordCard
          path="/api/user/password"
          onChanged={() => void client.invalidateQueries({ queryKey: ownSessionsQuery.queryKey })}
        />
      )}
      <SessionsCard />
      <LookCard />
    </SubPage>
  );
}
