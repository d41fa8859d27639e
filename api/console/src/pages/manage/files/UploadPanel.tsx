import { Button } from '@mantine/core';
import { type ReactNode, useId } from 'react';

import { useT } from '../../../i18n';
import { ConflictDialog } from './ConflictDialog';
import styles from './files.module.css';
import { isOpen, type Upload } from './upload-queue';
import { UploadRow } from './UploadRow';
import { queue } from './uploads';
import { useUploads } from './useUploads';

/** Rows that are shown at once; the others are counted. */
const SHOWN = 8;
/** States in the order of their rows. */
const ORDER: Upload['state'][] = ['sending', 'failed', 'waiting', 'cancelled', 'done'];

/** Files on their way to the server, and the question about those that are there already. */
export function UploadPanel(): ReactNode {
  const t = useT();
  const id = useId();
  const { uploads, question } = useUploads();
  const open = uploads.filter(isOpen);
  const failed = uploads.filter(({ state }) => state === 'failed').length;
  const done = uploads.filter(({ state }) => state === 'done').length;
  const rows = ORDER.flatMap((state) => uploads.filter((upload) => upload.state === state)).slice(0, SHOWN);
  return (
    <>
      {question && <ConflictDialog question={question} />}
      {uploads.length > 0 && (
        <section className={styles.uploads} aria-labelledby={id}>
          <div className="row">
            <h3 id={id} className="grow" role="status">
              {open.length > 0
                ? t('upload.under.way', { done, total: uploads.length })
                : t('upload.ended', { done, failed })}
            </h3>
            {open.length > 1 && (
              <Button size="compact-sm" onClick={() => queue.cancelAll()}>
                {t('upload.cancel.all')}
              </Button>
            )}
            {open.length < uploads.length && (
              <Button size="compact-sm" variant="subtle" onClick={() => queue.clear()}>
                {t('upload.clear')}
              </Button>
            )}
          </div>
          <ul className={styles.uploadRows}>
            {rows.map((upload) => (
              <UploadRow key={upload.id} upload={upload} />
            ))}
          </ul>
          {uploads.length > SHOWN && <small>{t('upload.others', { count: uploads.length - SHOWN })}</small>}
        </section>
      )}
    </>
  );
}
