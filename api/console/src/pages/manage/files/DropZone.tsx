import { type DragEvent, type ReactNode, useRef, useState } from 'react';

import { useT } from '../../../i18n';
import { pickedByDrop } from './picked-files';
import styles from './files.module.css';
import { questions } from './uploads';
import { useStartUpload } from './useUploads';

interface Props {
  folder: string;
  className?: string;
  children: ReactNode;
}

/** Part of the page on which files and folders can be dropped; the buttons do the same by keyboard. */
export function DropZone({ folder, className, children }: Props): ReactNode {
  const t = useT();
  const start = useStartUpload(folder);
  const [over, setOver] = useState(false);
  const depth = useRef(0);
  const hasFiles = (event: DragEvent): boolean => event.dataTransfer.types.includes('Files');
  const enter = (by: number): void => {
    depth.current = Math.max(0, depth.current + by);
    setOver(depth.current > 0 && questions.first() === undefined);
  };
  return (
    // Dropping has no keyboard: the upload buttons are beside it.
    // eslint-disable-next-line jsx-a11y/no-static-element-interactions
    <div
      className={`${styles.zone ?? ''} ${className ?? ''}`}
      data-over={over || undefined}
      onDragEnter={(event) => {
        if (hasFiles(event)) enter(1);
      }}
      onDragLeave={(event) => {
        if (hasFiles(event)) enter(-1);
      }}
      onDragOver={(event) => {
        if (hasFiles(event)) event.preventDefault();
      }}
      onDrop={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        depth.current = 0;
        setOver(false);
        // Events of the dialog of a question arrive here, too.
        if (questions.first() === undefined) start(pickedByDrop(event.dataTransfer));
      }}
    >
      {children}
      {over && <div className={styles.drop}>{t('upload.drop')}</div>}
    </div>
  );
}
