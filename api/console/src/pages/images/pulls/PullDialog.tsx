import { Button, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';

import { localTagsQuery } from '../../../api/queries/images';
import { DialogFrame } from '../../../components/DialogFrame';
import dialog from '../../../components/dialog.module.css';
import { useT } from '../../../i18n';
import { fullReference, shortImage } from '../../../modules/image-name';
import { usePullsOfPage } from './pulls-context';

/** Dialog that asks which image is pulled. */
export function PullDialog({ onClose }: { onClose: () => void }): ReactNode {
  const t = useT();
  const { start } = usePullsOfPage();
  const { data } = useQuery(localTagsQuery);
  const [text, setText] = useState('');
  const name = text.trim();
  // A tag whose repository is not known yet is completed by the server.
  const reference = name === '' ? undefined : (fullReference(name, data?.repository) ?? name);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (reference === undefined) return;
    start(reference);
    onClose();
  };
  return (
    <DialogFrame opened title={t('pull.title')} onClose={onClose}>
      <form onSubmit={submit} className="stack">
        <TextInput
          label={t('users.image')}
          description={t('pull.hint', { repository: data?.repository ?? 'image.name' })}
          value={text}
          data-autofocus
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <div className={dialog.buttons}>
          <Button onClick={onClose}>{t('preview.cancel')}</Button>
          <Button type="submit" variant="filled" disabled={reference === undefined}>
            {reference === undefined ? t('pull.verb.none') : t('pull.verb', { image: shortImage(reference) })}
          </Button>
        </div>
      </form>
    </DialogFrame>
  );
}
