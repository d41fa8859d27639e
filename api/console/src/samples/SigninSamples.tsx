import type { ReactNode } from 'react';

import { Failure } from '../api/failure';
import signin from '../signin/signin.module.css';
import { PasswordForm } from '../signin/PasswordForm';
import { SignInFailure } from '../signin/SignInFailure';

/** Messages of the sign-in. */
export function SigninSamples(): ReactNode {
  const failed = (code: string): Failure => new Failure(403, code, code);
  return (
    <>
      <SignInFailure failure={failed('bad_credentials')} wait={0} incomplete={false} />
      <SignInFailure failure={failed('too_many_attempts')} wait={42} incomplete={false} />
      <SignInFailure failure={failed('not_whitelisted')} wait={0} incomplete={false} />
      <div className={signin.box}>
        <PasswordForm username="alice" onSignedIn={() => undefined} />
      </div>
    </>
  );
}
