import { Button, TextInput } from '@mantine/core';
import { type FormEvent, type ReactNode, useState } from 'react';

import { Failure } from '../../../api/failure';
import { DialogFrame } from '../../../components/DialogFrame';
import dialog from '../../../components/dialog.module.css';
import { useT } from '../../../i18n';
import { failureText } from '../../../i18n/failure';
import { isName } from './paths';

interface Props {
  title: string;
  verb: string;
  onClose: () => void;
  /** Throws a Failure, which is shown at the name. */
  onName: (name: string) => Promise<void>;
}

/** Asks for a name. */
export function NameDialog({ title, verb, onClose, onName }: Props): ReactNode {
  const t = useT();
  const [name, setName] = useState('');
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (!isName(name.trim())) {
      setError(t('files.name.bad'));
      return;
    }
    setBusy(true);
    try {
      await onName(name.trim());
      onClose();
    } catch (thrown) {
      setError(failureText(Failure.from(thrown), t).text);
      setBusy(false);
    }
  };
  return (
    <DialogFrame opened title={title} onClose={onClose}>
      <form onSubmit={(event) => void save(event)} noValidate autoComplete="off">
        <TextInput
          label={t('files.name')}
          value={name}
          error={error}
          autoFocus
          data-autofocus
          spellCheck={false}
          onChange={(event) => {
            setName(event.currentTarget.value);
            setError(undefined);
          }}
        />
        <div className={dialog.buttons}>
          <Button onClick={onClose}>{t('preview.cancel')}</Button>
          <Button type="submit" variant="filled" disabled={busy || name.trim() === ''}>
            {verb}
          </Button>
        </div>
      </form>
    </DialogFrame>
  );
}
