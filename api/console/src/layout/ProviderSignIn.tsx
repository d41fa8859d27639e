import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';

import { Failure } from '../api/failure';
import { readSession } from '../api/queries/session';
import type { UserInfo } from '../api/types';
import { ErrorState } from '../components/ErrorState';
import { useT } from '../i18n';
import { ownUrl } from '../prefix';
import signin from '../signin/signin.module.css';

interface Props {
  /** Name of the identity provider. */
  provider: string;
  onSignedIn: (account: UserInfo) => void;
}

/** Sign-in with an identity provider in another tab; the dialog closes by itself where that tab can tell. */
export function ProviderSignIn({ provider, onSignedIn }: Props): ReactNode {
  const t = useT();
  const [failure, setFailure] = useState<Failure>();
  const check = (): void => {
    setFailure(undefined);
    readSession({ keepUnauthorized: true }).then(onSignedIn, (thrown: unknown) =>
      setFailure(Failure.from(thrown)),
    );
  };
  const missing = failure?.status === 401;
  const next = encodeURIComponent(ownUrl('/manage'));
  return (
    <div className={signin.form}>
      <a
        className={signin.primary}
        href={ownUrl(`/api/login/oidc?next=${next}`)}
        target="_blank"
        rel="noreferrer"
      >
        {t('signin.again.with', { provider })}
      </a>
      <Button onClick={check}>{t('session.done')}</Button>
      <div role="status">{missing && t('session.not.yet')}</div>
      {failure && !missing && <ErrorState title={t('session.unknown')} failure={failure} />}
    </div>
  );
}
