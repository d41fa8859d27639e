import { Button } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';

import { get } from '../api/client';
import { loginModeQuery, sessionQuery } from '../api/queries/session';
import { onSessionChange, provideSessionDialog, sessionHasEnded, sessionRenewed } from '../api/session';
import type { SignedIn, UserInfo } from '../api/types';
import { Rich, useT } from '../i18n';
import { ownUrl } from '../prefix';
import { PasswordForm } from '../signin/PasswordForm';
import signin from '../signin/signin.module.css';
import { DialogFrame } from '../components/DialogFrame';

/** Asks for a new sign-in when the session has ended; the page beneath keeps what was typed. */
export function SessionDialog(): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const open = useSyncExternalStore(onSessionChange, sessionHasEnded);
  const { data: mode } = useQuery({ ...loginModeQuery, enabled: open });
  const session = client.getQueryData<UserInfo>(sessionQuery.queryKey);
  const [missing, setMissing] = useState(false);
  useEffect(provideSessionDialog, []);

  const goOn = (account: SignedIn | UserInfo): void => {
    // Another account has other pages and other data.
    if (session !== undefined && account.username !== session.username) location.assign(ownUrl('/'));
    else sessionRenewed();
  };
  const check = (): void => {
    setMissing(false);
    get<UserInfo>('/api/user/info', {}, { keepUnauthorized: true }).then(goOn, () => setMissing(true));
  };
  const byProvider = mode?.provider.has_browser === true && session?.role !== 'superadmin';
  return (
    <DialogFrame opened={open} title={t('session.ended')}>
      <p>
        <Rich k="session.ended.text" values={{ name: <strong>{session?.username}</strong> }} />
      </p>
      {byProvider && (
        <div className={signin.form}>
          <a
            className={signin.primary}
            href={ownUrl('/api/login/oidc?next=/manage')}
            target="_blank"
            rel="noreferrer"
          >
            {t('signin.again.with', { provider: mode.provider.display_name })}
          </a>
          <Button onClick={check}>{t('session.done')}</Button>
          <div role="status">{missing && t('session.not.yet')}</div>
        </div>
      )}
      {mode !== undefined && !byProvider && <PasswordForm username={session?.username} onSignedIn={goOn} />}
      <p className={signin.or}>
        <a href={ownUrl('/login')}>{t('session.leave')}</a>
      </p>
    </DialogFrame>
  );
}
