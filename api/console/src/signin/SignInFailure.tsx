import type { ReactNode } from 'react';

import type { Failure } from '../api/failure';
import { failureText } from '../i18n/failure';
import { useSigninT } from './keys';
import styles from './signin.module.css';

interface Props {
  failure: Failure | undefined;
  wait: number;
  incomplete: boolean;
}

/** Says why a sign-in failed, and when it may be tried again. */
export function SignInFailure({ failure, wait, incomplete }: Props): ReactNode {
  const t = useSigninT();
  const said = failure && !incomplete ? failureText(failure, t) : undefined;
  return (
    <div role="alert" className={styles.alert}>
      {incomplete && <strong>{t('signin.required')}</strong>}
      {said && <strong lang={said.lang}>{said.text}</strong>}
      {/* The seconds are not read out one by one. */}
      {said && wait > 0 && (
        <small aria-live="off">
          {wait > 90
            ? t('signin.wait.minutes', { minutes: Math.ceil(wait / 60) })
            : t('signin.wait', { seconds: wait })}
        </small>
      )}
    </div>
  );
}
