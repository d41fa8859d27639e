import { Button, SegmentedControl, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import type { Schemas } from '../../api/types';
import { CopyLine } from '../../components/CopyLine';
import { DialogFrame } from '../../components/DialogFrame';
import dialog from '../../components/dialog.module.css';
import { ErrorState } from '../../components/ErrorState';
import { useT } from '../../i18n';
import { ROLE_LABELS } from './token-roles';

type Role = Schemas['ApiTokenRole'];

const ROLES: readonly Role[] = ['read', 'admin'];

/** Dialog that creates an API token, and shows it once. */
export function CreateApiToken({ onClose }: { onClose: () => void }): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('read');
  const [validity, setValidity] = useState('90d');
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () =>
      post<Schemas['NewApiToken']>('/api/admin/api-tokens/create', {
        name: name.trim(),
        role,
        expires_in: validity.trim(),
      }),
    onSuccess: () => void client.invalidateQueries({ queryKey: keys.list('api-token') }),
  });
  const failure = error ? Failure.from(error) : undefined;
  const refused = (field: string): string | undefined =>
    failure?.details.field === field ? failure.message : undefined;
  const taken = failure?.code === 'already_exists' ? t('error.already_exists') : undefined;
  const isShown = taken !== undefined || refused('name') !== undefined || refused('expires_in') !== undefined;
  const isReady = name.trim() !== '' && validity.trim() !== '' && !isPending;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (isReady) mutate();
  };
  if (data !== undefined) {
    return (
      // The token is shown once: the dialog is left by its button only.
      <DialogFrame opened title={t('tokens.created', { name: data.name })}>
        <p>{t('tokens.once')}</p>
        <CopyLine text={data.token} />
        <div className={dialog.buttons}>
          <Button variant="filled" onClick={onClose}>
            {t('create.close')}
          </Button>
        </div>
      </DialogFrame>
    );
  }
  return (
    <DialogFrame opened title={t('tokens.create')} onClose={isPending ? undefined : onClose}>
      <form onSubmit={submit} className="stack" autoComplete="off">
        <TextInput
          label={t('objects.name')}
          description={t('tokens.name.hint')}
          value={name}
          error={refused('name') ?? taken}
          autoFocus
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <SegmentedControl
          aria-label={t('tokens.role')}
          value={role}
          onChange={(value) => setRole(value as Role)}
          data={ROLES.map((value) => ({ value, label: t(ROLE_LABELS[value]) }))}
        />
        <TextInput
          label={t('tokens.validity')}
          description={t('tokens.validity.hint')}
          value={validity}
          error={refused('expires_in')}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setValidity(event.currentTarget.value)}
        />
        {failure && !isShown && <ErrorState title={t('tokens.create.failed')} failure={failure} />}
        <div className={dialog.buttons}>
          <Button onClick={onClose} disabled={isPending}>
            {t('preview.cancel')}
          </Button>
          <Button type="submit" variant="filled" disabled={!isReady}>
            {isPending ? t('preview.working') : t('tokens.create')}
          </Button>
        </div>
      </form>
    </DialogFrame>
  );
}
