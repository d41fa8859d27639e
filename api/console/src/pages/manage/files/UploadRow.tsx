import { Button, Progress } from '@mantine/core';
import type { ReactNode } from 'react';

import { useT, useTranslation } from '../../../i18n';
import { failureText } from '../../../i18n/failure';
import { byteSize } from '../../../i18n/values';
import { visibleText } from '../../../modules/visible-text';
import styles from './files.module.css';
import { isOpen, type Upload } from './upload-queue';
import { queue } from './uploads';

const STATES = {
  waiting: 'upload.waiting',
  sending: 'upload.sending',
  done: 'upload.done',
  failed: 'upload.not.done',
  cancelled: 'upload.cancelled',
} as const;

/** A file on its way: its bar, its speed, what can be done. */
export function UploadRow({ upload }: { upload: Upload }): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const { size } = upload;
  const percent = size === 0 ? 100 : (upload.sent / size) * 100;
  const name = visibleText(upload.path);
  const said = upload.failure && failureText(upload.failure, t);
  const conflict = upload.failure?.code === 'already_exists';
  const again = t(conflict ? 'upload.replace' : 'upload.again');
  const sizes =
    upload.state === 'sending'
      ? t('upload.of', { sent: byteSize(upload.sent, language), size: byteSize(size, language) })
      : byteSize(size, language);
  return (
    <li className={styles.upload} data-state={upload.state}>
      <span className={styles.uploadName}>{name}</span>
      <small className="nowrap">
        {upload.state !== 'sending' && `${t(STATES[upload.state])} · `}
        {sizes}
        {upload.speed !== undefined && ` · ${t('upload.speed', { size: byteSize(upload.speed, language) })}`}
      </small>
      {isOpen(upload) && (
        <Button
          size="compact-sm"
          variant="subtle"
          aria-label={t('table.action', { action: t('upload.cancel'), name })}
          onClick={() => queue.cancel(upload.id)}
        >
          {t('upload.cancel')}
        </Button>
      )}
      {(upload.state === 'failed' || upload.state === 'cancelled') && (
        <Button
          size="compact-sm"
          aria-label={t('table.action', { action: again, name })}
          onClick={() => queue.retry(upload.id, conflict)}
        >
          {again}
        </Button>
      )}
      {upload.state === 'sending' && (
        <Progress
          className={styles.bar}
          size="sm"
          value={percent}
          aria-label={t('upload.progress', { name })}
        />
      )}
      {said && (
        <div className={styles.uploadFailure} lang={said.lang}>
          {said.text}
        </div>
      )}
    </li>
  );
}
