import { useCallback, useEffect, useState } from 'react';

import { forgetCsrf, post } from '../api/client';
import { Failure } from '../api/failure';
import type { SignedIn } from '../api/types';

/** State of a sign-in by name and password. */
export interface SignIn {
  busy: boolean;
  failure: Failure | undefined;
  /** Seconds until the next attempt is accepted; 0 when it may be made. */
  wait: number;
  submit: (username: string, password: string) => Promise<void>;
}

/** Signs in by name and password; counts down when the server wants a pause. */
export function useSignIn(onSignedIn: (account: SignedIn) => void): SignIn {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const [wait, setWait] = useState(0);

  const waiting = wait > 0;
  useEffect(() => {
    if (!waiting) return;
    const timer = setInterval(() => setWait((seconds) => Math.max(0, seconds - 1)), 1000);
    return () => clearInterval(timer);
  }, [waiting]);

  const submit = useCallback(
    async (username: string, password: string) => {
      setBusy(true);
      setFailure(undefined);
      try {
        const account = await post<SignedIn>(
          '/api/login',
          { username, password },
          { keepUnauthorized: true, noCsrf: true },
        );
        forgetCsrf();
        onSignedIn(account);
      } catch (thrown) {
        const failed = Failure.from(thrown);
        setFailure(failed);
        setWait(Math.ceil(failed.retryAfter ?? 0));
        setBusy(false);
      }
    },
    [onSignedIn],
  );
  return { busy, failure, wait, submit };
}
