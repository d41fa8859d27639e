import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { DialogFrame } from '../../../components/DialogFrame';
import dialog from '../../../components/dialog.module.css';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from './files.module.css';
import type { Question } from './questions';

/** Names that are listed. */
const SHOWN = 8;

/** Asks once what to do with all files that are there already. */
export function ConflictDialog({ question }: { question: Question }): ReactNode {
  const t = useT();
  const { paths, answer } = question;
  const count = paths.length;
  return (
    <DialogFrame opened title={t('conflict.title', { count })} onClose={() => answer('cancel')}>
      <ul className={styles.names}>
        {paths.slice(0, SHOWN).map((path) => (
          <li key={path}>{visibleText(path)}</li>
        ))}
      </ul>
      {count > SHOWN && <small>{t('upload.others', { count: count - SHOWN })}</small>}
      <p className="dim">{t('conflict.text')}</p>
      <div className={dialog.buttons}>
        <Button onClick={() => answer('cancel')}>{t('preview.cancel')}</Button>
        <Button onClick={() => answer('skip')}>{t('conflict.skip', { count })}</Button>
        <Button variant="filled" color="bad" onClick={() => answer('replace')}>
          {t('conflict.replace', { count })}
        </Button>
      </div>
    </DialogFrame>
  );
}
