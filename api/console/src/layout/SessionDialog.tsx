import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';

import { noteAccount, shownAccount, tellTabs } from '../api/account';
import { Failure } from '../api/failure';
import { loginModeQuery, sessionQuery } from '../api/queries/session';
import { onSessionChange, provideSessionDialog, sessionHasEnded, sessionRenewed } from '../api/session';
import type { SignedIn, UserInfo } from '../api/types';
import { DialogFrame } from '../components/DialogFrame';
import { ErrorState } from '../components/ErrorState';
import { LoadingState } from '../components/LoadingState';
import { Rich, useT } from '../i18n';
import { ownUrl } from '../prefix';
import { PasswordForm } from '../signin/PasswordForm';
import signin from '../signin/signin.module.css';
import styles from './layout.module.css';
import { ProviderSignIn } from './ProviderSignIn';

/** Asks for a new sign-in when the session has ended; the page beneath keeps what was typed. */
export function SessionDialog(): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const open = useSyncExternalStore(onSessionChange, sessionHasEnded);
  const { data: mode, error, refetch } = useQuery({ ...loginModeQuery, enabled: open });
  const session = client.getQueryData<UserInfo>(sessionQuery.queryKey);
  const name = shownAccount();
  // The form of a sign-in that is over is not shown again.
  const [round, setRound] = useState(0);
  useEffect(provideSessionDialog, []);

  const goOn = ({ username }: SignedIn | UserInfo): void => {
    // Of another account nothing on this page may be sent: it is closed.
    if (!noteAccount(username)) return;
    setRound(round + 1);
    tellTabs({ signedIn: username });
    sessionRenewed();
  };
  const provider = session?.role === 'superadmin' ? undefined : mode?.provider;
  const byProvider = provider?.has_browser === true;
  return (
    <DialogFrame opened={open} title={t('session.ended')}>
      {/* Enter that was meant for the page must not follow a link of the dialog. */}
      <p tabIndex={-1} data-autofocus className={styles.begin}>
        <Rich k="session.ended.text" values={{ name: <strong>{name}</strong> }} />
      </p>
      {mode === undefined && !error && <LoadingState rows={2} />}
      {mode === undefined && error && (
        <ErrorState
          title={t('signin.mode.failed')}
          failure={Failure.from(error)}
          onRetry={() => void refetch()}
        />
      )}
      {byProvider && <ProviderSignIn provider={provider.display_name} onSignedIn={goOn} />}
      {mode !== undefined && !byProvider && <PasswordForm key={round} username={name} onSignedIn={goOn} />}
      <p className={signin.or}>
        <a href={ownUrl('/login')}>{t('session.leave')}</a>
      </p>
    </DialogFrame>
  );
}
