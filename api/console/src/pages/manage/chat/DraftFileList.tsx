import { Button, Checkbox, CloseButton, Progress } from '@mantine/core';
import type { ReactNode } from 'react';

import type { DraftFile, DraftFiles } from '../../../chat/attachments';
import { Bytes } from '../../../components/Bytes';
import { useT } from '../../../i18n';
import { failureText } from '../../../i18n/failure';
import { visibleText } from '../../../modules/visible-text';
import styles from './chat.module.css';

interface Props {
  files: DraftFiles;
  list: readonly DraftFile[];
  /** The model of this agent takes pictures. */
  pictures: boolean;
}

/** Files that go with the message that is being written. */
export function DraftFileList({ files, list, pictures }: Props): ReactNode {
  const t = useT();
  if (list.length === 0) return null;
  return (
    <ul className={styles.draftFiles} aria-label={t('chat.attach.list')}>
      {list.map((file) => (
        <li key={file.key} className={styles.draftFile}>
          <DraftFileRow files={files} file={file} pictures={pictures} />
        </li>
      ))}
    </ul>
  );
}

function DraftFileRow({ files, file, pictures }: Omit<Props, 'list'> & { file: DraftFile }): ReactNode {
  const t = useT();
  const name = visibleText(file.name);
  const said = file.failure && failureText(file.failure, t);
  return (
    <>
      <span className={styles.fileName}>{name}</span>
      <small>
        <Bytes value={file.size} />
      </small>
      {file.state === 'sending' && (
        <Progress
          className={styles.progress}
          size="sm"
          value={file.size === 0 ? 0 : (file.sent / file.size) * 100}
          aria-label={t('chat.attach.progress', { name })}
        />
      )}
      {said && (
        <small className={styles.bad} role="alert" lang={said.lang}>
          {said.text}
        </small>
      )}
      {file.state === 'failed' && (
        <Button size="compact-sm" onClick={() => files.retry(file.key)}>
          {t('chat.attach.retry')}
        </Button>
      )}
      {pictures && file.canBePicture && (
        <Checkbox
          size="sm"
          label={t('chat.attach.picture')}
          aria-label={t('chat.attach.picture.of', { name })}
          checked={file.picture}
          onChange={(event) => files.setPicture(file.key, event.currentTarget.checked)}
        />
      )}
      <CloseButton
        size="md"
        aria-label={t('chat.attach.remove', { name })}
        onClick={() => files.remove(file.key)}
      />
    </>
  );
}
