import { Button, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import type { Schemas } from '../../api/types';
import { CopyLine } from '../../components/CopyLine';
import { DialogFrame } from '../../components/DialogFrame';
import dialog from '../../components/dialog.module.css';
import { ErrorState } from '../../components/ErrorState';
import { useT } from '../../i18n';

interface Props {
  onClose: () => void;
  /** Called when the list has the new account. */
  onChanged: () => void;
}

/** Dialog that creates an administrator, and shows the random password once. */
export function CreateSuperadmin({ onClose, onChanged }: Props): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const [name, setName] = useState('');
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: (username: string) =>
      post<Schemas['Credentials']>('/api/admin/superadmins/create', { username }),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ['list', 'superadmin'] }).then(onChanged);
    },
  });
  const failure = error ? Failure.from(error) : undefined;
  const refused =
    failure?.details.field === 'username'
      ? failure.message
      : failure?.code === 'already_exists'
        ? t('error.already_exists')
        : undefined;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (name.trim() !== '' && !isPending) mutate(name.trim());
  };
  if (data !== undefined) {
    return (
      // The password is shown once: the dialog is left by its button only.
      <DialogFrame opened title={t('superadmins.created', { name: data.username })}>
        <p>{t('superadmins.once', { name: data.username })}</p>
        <CopyLine text={data.password} />
        <div className={dialog.buttons}>
          <Button variant="filled" onClick={onClose}>
            {t('create.close')}
          </Button>
        </div>
      </DialogFrame>
    );
  }
  return (
    <DialogFrame opened title={t('superadmins.create')} onClose={isPending ? undefined : onClose}>
      <form onSubmit={submit} className="stack" autoComplete="off">
        <TextInput
          label={t('objects.name')}
          description={t('superadmins.name.hint')}
          value={name}
          error={refused}
          autoFocus
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <small>{t('superadmins.create.text')}</small>
        {failure && refused === undefined && (
          <ErrorState title={t('superadmins.create.failed')} failure={failure} />
        )}
        <div className={dialog.buttons}>
          <Button onClick={onClose} disabled={isPending}>
            {t('preview.cancel')}
          </Button>
          <Button type="submit" variant="filled" disabled={name.trim() === '' || isPending}>
            {isPending ? t('preview.working') : t('superadmins.create')}
          </Button>
        </div>
      </form>
    </DialogFrame>
  );
}
