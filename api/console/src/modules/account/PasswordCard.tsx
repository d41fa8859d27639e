import { Button, PasswordInput } from '@mantine/core';
import { type FormEvent, type ReactNode, useId, useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import type { Schemas } from '../../api/types';
import { useSession } from '../../app/useSession';
import { ErrorState } from '../../components/ErrorState';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import styles from './account.module.css';

/** Fewest characters of a password. */
const FEWEST = 8;

interface Props {
  /** Address that takes the change. */
  path: string;
  /** Called when the password was changed: other sessions have ended. */
  onChanged: () => void;
}

/** Form for another password of the account that is signed in. */
export function PasswordCard({ path, onChanged }: Props): ReactNode {
  const t = useT();
  const id = useId();
  const toasts = useToasts();
  const { username } = useSession();
  const [old, setOld] = useState('');
  const [fresh, setFresh] = useState('');
  const [failure, setFailure] = useState<Failure>();
  const [short, setShort] = useState(false);
  const [busy, setBusy] = useState(false);
  const wrong = failure?.code === 'wrong_password';
  const refused = failure?.details.field === 'new_password';
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const isShort = [...fresh.normalize('NFC')].length < FEWEST;
    setShort(isShort);
    setFailure(undefined);
    if (isShort || busy) return;
    setBusy(true);
    try {
      const passwords = { old_password: old, new_password: fresh };
      const { sessions_ended: ended } = await post<Schemas['PasswordChanged']>(path, passwords);
      setOld('');
      setFresh('');
      toasts.done(t('password.changed', { count: ended }));
      onChanged();
    } catch (thrown) {
      setFailure(Failure.from(thrown));
    }
    setBusy(false);
  };
  const toggle = { 'aria-label': t('form.secret.show') };
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{t('password.title')}</h2>
      <form className={styles.form} noValidate onSubmit={(event) => void save(event)}>
        {/* Password managers find the account by it. */}
        <input type="text" name="username" autoComplete="username" value={username} readOnly hidden />
        <PasswordInput
          label={t('password.old')}
          value={old}
          autoComplete="current-password"
          error={wrong ? t('error.wrong_password') : undefined}
          visibilityToggleButtonProps={toggle}
          onChange={(event) => setOld(event.currentTarget.value)}
        />
        <PasswordInput
          label={t('password.new')}
          description={t('password.rule', { count: FEWEST })}
          value={fresh}
          autoComplete="new-password"
          error={refused ? failure.message : short && t('password.short', { count: FEWEST })}
          visibilityToggleButtonProps={toggle}
          onChange={(event) => setFresh(event.currentTarget.value)}
        />
        {failure && !wrong && !refused && <ErrorState title={t('password.failed')} failure={failure} />}
        <small>{t('password.ends')}</small>
        <Button type="submit" variant="filled" disabled={busy || old === '' || fresh === ''}>
          {t('password.change')}
        </Button>
      </form>
    </section>
  );
}
