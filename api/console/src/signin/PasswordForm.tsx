import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';

import type { SignedIn } from '../api/types';
import { useSigninT } from './keys';
import styles from './signin.module.css';
import { SignInFailure } from './SignInFailure';
import { useSignIn } from './useSignIn';

interface Props {
  /** Name that is already known, of a session that ended. */
  username?: string;
  onSignedIn: (account: SignedIn) => void;
}

/** Form for name and password. */
export function PasswordForm({ username, onSignedIn }: Props): ReactNode {
  const t = useSigninT();
  const id = useId();
  const { busy, failure, wait, submit } = useSignIn(onSignedIn);
  const [incomplete, setIncomplete] = useState(false);
  const password = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (failure === undefined) return;
    password.current?.focus();
    password.current?.select();
  }, [failure]);

  const send = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const name = String(data.get('username') ?? '').trim();
    const secret = String(data.get('password') ?? '');
    const missing = name === '' || secret === '';
    setIncomplete(missing);
    if (!missing && !busy && wait === 0) void submit(name, secret);
  };

  return (
    <form onSubmit={send} noValidate className={styles.form}>
      <SignInFailure failure={failure} wait={wait} incomplete={incomplete} />
      <div>
        <label htmlFor={`${id}-name`}>{t('signin.username')}</label>
        <input
          id={`${id}-name`}
          name="username"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          defaultValue={username}
          readOnly={username !== undefined}
          autoFocus={username === undefined}
          required
        />
      </div>
      <div>
        <label htmlFor={`${id}-password`}>{t('signin.password')}</label>
        <input
          ref={password}
          id={`${id}-password`}
          name="password"
          type="password"
          autoComplete="current-password"
          autoFocus={username !== undefined}
          required
        />
      </div>
      <button type="submit" className={styles.primary} disabled={busy || wait > 0}>
        {busy ? t('signin.submitting') : t('signin.submit')}
      </button>
    </form>
  );
}
