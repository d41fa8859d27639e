import { Button, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';

import { localTagsQuery } from '../../api/queries/images';
import { useT } from '../../i18n';
import styles from './images.module.css';

interface Props {
  /** Empty: the configured repository. */
  image: string;
  onChoose: (image: string) => void;
}

/** Form for the repository whose tags are listed: the configured one, or another. */
export function RepositoryForm({ image, onChoose }: Props): ReactNode {
  const t = useT();
  const { data } = useQuery(localTagsQuery);
  const [text, setText] = useState(image);
  const configured = data?.repository ?? '';
  const next = text.trim() === configured ? '' : text.trim();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onChoose(next);
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <TextInput
        label={t('registry.repository')}
        value={text}
        placeholder={configured}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {next !== image && <Button type="submit">{t('registry.show')}</Button>}
    </form>
  );
}
