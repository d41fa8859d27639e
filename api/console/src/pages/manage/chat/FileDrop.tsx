import { type DragEvent, type ReactNode, useRef, useState } from 'react';

import { useT } from '../../../i18n';
import styles from './chat.module.css';

interface Props {
  className?: string;
  onFiles: (files: File[]) => void;
  children: ReactNode;
}

const hasFiles = (event: DragEvent): boolean => event.dataTransfer.types.includes('Files');

/** Part of the page on which files can be dropped; the button beside it does the same by keyboard. */
export function FileDrop({ className, onFiles, children }: Props): ReactNode {
  const t = useT();
  const [over, setOver] = useState(false);
  const depth = useRef(0);
  const enter = (by: number): void => {
    depth.current = Math.max(0, depth.current + by);
    setOver(depth.current > 0);
  };
  return (
    // Dropping has no keyboard: the button is beside it.
    // eslint-disable-next-line jsx-a11y/no-static-element-interactions
    <div
      className={className}
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
        enter(-depth.current);
        // Folders have no content here.
        const files = [...event.dataTransfer.items].flatMap((item) => {
          const file = item.webkitGetAsEntry()?.isDirectory === true ? null : item.getAsFile();
          return file === null ? [] : [file];
        });
        if (files.length > 0) onFiles(files);
      }}
    >
      {children}
      {over && <div className={styles.drop}>{t('chat.attach.drop')}</div>}
    </div>
  );
}
