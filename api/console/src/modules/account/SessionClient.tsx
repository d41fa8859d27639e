import type { ReactNode } from 'react';

import { TonePill } from '../../components/StatusPill';
import { useT } from '../../i18n';
import { clientKey } from './session-client';

/** Program of a session; the session of this page is marked. */
export function SessionClient({ client, isCurrent }: { client: string; isCurrent: boolean }): ReactNode {
  const t = useT();
  const key = clientKey(client);
  return (
    <>
      {key ? t(key) : client} {isCurrent && <TonePill tone="ok">{t('sessions.this')}</TonePill>}
    </>
  );
}
