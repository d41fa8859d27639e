import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import type { Schemas } from '../../api/types';
import { CopyLine } from '../../components/CopyLine';
import { DialogFrame } from '../../components/DialogFrame';
import dialog from '../../components/dialog.module.css';
import { ErrorState } from '../../components/ErrorState';
import { type MessageKey, useT } from '../../i18n';

interface Props {
  name: string;
  onClose: () => void;
  /** Address that makes the password; that for users if absent. */
  path?: string;
  /** Effect of it. */
  effect?: MessageKey;
}

/** Dialog that gives an account a random password, and shows it once. */
export function ResetPassword({
  name,
  onClose,
  path = '/api/admin/users/reset-password',
  effect = 'reset.text',
}: Props): ReactNode {
  const t = useT();
  const [password, setPassword] = useState<string>();
  const [failure, setFailure] = useState<Failure>();
  const [working, setWorking] = useState(false);
  const reset = async (): Promise<void> => {
    setWorking(true);
    setFailure(undefined);
    try {
      const answer = await post<Schemas['PasswordReset']>(path, { username: name });
      setPassword(answer.password ?? '');
    } catch (thrown) {
      setFailure(Failure.from(thrown));
    }
    setWorking(false);
  };
  const isDone = password !== undefined;
  return (
    <DialogFrame opened title={t('reset.title', { name })} onClose={isDone || working ? undefined : onClose}>
      <p>{t(isDone ? 'reset.done' : effect)}</p>
      {isDone && <CopyLine text={password} />}
      {failure && <ErrorState title={t('preview.failed')} failure={failure} />}
      <div className={dialog.buttons}>
        {!isDone && (
          <Button onClick={onClose} disabled={working}>
            {t('preview.cancel')}
          </Button>
        )}
        {isDone ? (
          <Button variant="filled" onClick={onClose}>
            {t('create.close')}
          </Button>
        ) : (
          <Button variant="filled" disabled={working} onClick={() => void reset()}>
            {working ? t('preview.working') : t('reset.verb')}
          </Button>
        )}
      </div>
    </DialogFrame>
  );
}
