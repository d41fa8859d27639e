import { type ReactNode, useCallback, useEffect, useState } from 'react';

import { get } from '../api/client';
import { Failure } from '../api/failure';
import type { LoginMode, SignedIn } from '../api/types';
import { failureText } from '../i18n/failure';
import { destination, providerUrl } from './destination';
import { useSigninT } from './keys';
import { PasswordForm } from './PasswordForm';
import styles from './signin.module.css';
import { Switches } from './Switches';

const quietly = { keepUnauthorized: true };

/** The sign-in page: by password, by the directory's password, or through an identity provider. */
export function SignInPage(): ReactNode {
  const t = useSigninT();
  const [mode, setMode] = useState<LoginMode>();
  const [failure, setFailure] = useState<Failure>();
  const ask = useCallback(() => {
    get<LoginMode>('/api/login/mode', {}, quietly).then(
      (answer) => {
        setFailure(undefined);
        setMode(answer);
      },
      (thrown: unknown) => setFailure(Failure.from(thrown)),
    );
  }, []);
  useEffect(ask, [ask]);

  const provider = mode?.provider;
  const hint =
    provider?.has_directory === true
      ? t('signin.directory')
      : provider?.has_browser === true
        ? t('signin.sso')
        : '';
  return (
    <main className={styles.page}>
      <div className={styles.box}>
        <div className="brand">{t('signin.product')}</div>
        <h1>{t('signin.title')}</h1>
        {hint !== '' && <small>{hint}</small>}
        {failure && (
          <div role="alert" className={styles.alert}>
            <strong>{t('signin.mode.failed')}</strong>
            <small>{failureText(failure, t).text}</small>
          </div>
        )}
        {failure && (
          <button type="button" className={styles.secondary} onClick={ask}>
            {t('signin.retry')}
          </button>
        )}
        {provider?.has_browser === true && (
          <a className={`${styles.primary} ${styles.sso}`} href={providerUrl(location.search)}>
            {t('signin.with', { provider: provider.display_name })}
          </a>
        )}
        {provider?.has_browser === true && (
          <details className={styles.more}>
            <summary>{t('signin.sso.admin')}</summary>
            <PasswordForm onSignedIn={goOn} />
          </details>
        )}
        {provider?.has_browser === false && <PasswordForm onSignedIn={goOn} />}
        <Switches />
      </div>
    </main>
  );
}

function goOn(account: SignedIn): void {
  location.replace(destination(account, location.search));
}
