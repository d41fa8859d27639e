import type { ReactNode } from 'react';

import { useFileDrop } from '../../../components/useFileDrop';
import { useT } from '../../../i18n';
import styles from './files.module.css';
import { pickedByDrop } from './picked-files';
import { questions } from './uploads';
import { useStartUpload } from './useUploads';

interface Props {
  folder: string;
  className?: string;
  children: ReactNode;
}

// Events of the dialog of a question arrive here, too.
const isUnasked = (): boolean => questions.first() === undefined;

/** Part of the page on which files and folders can be dropped; the buttons do the same by keyboard. */
export function DropZone({ folder, className, children }: Props): ReactNode {
  const t = useT();
  const start = useStartUpload(folder);
  const { over, handlers } = useFileDrop((data) => {
    start(pickedByDrop(data));
  }, isUnasked);
  return (
    <div className={`${styles.zone ?? ''} ${className ?? ''}`} data-over={over || undefined} {...handlers}>
      {children}
      {over && <div className={styles.drop}>{t('upload.drop')}</div>}
    </div>
  );
}
