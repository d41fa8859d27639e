import type { ReactNode } from 'react';

import { useFileDrop } from '../../../components/useFileDrop';
import { useT } from '../../../i18n';
import styles from './chat.module.css';

interface Props {
  className?: string;
  onFiles: (files: File[]) => void;
  children: ReactNode;
}

/** The dropped files; folders have no content here. */
function filesOf(data: DataTransfer): File[] {
  return [...data.items].flatMap((item) => {
    const file = item.webkitGetAsEntry()?.isDirectory === true ? null : item.getAsFile();
    return file === null ? [] : [file];
  });
}

/** Part of the page on which files can be dropped; the button beside it does the same by keyboard. */
export function FileDrop({ className, onFiles, children }: Props): ReactNode {
  const t = useT();
  const { over, handlers } = useFileDrop((data) => {
    const files = filesOf(data);
    if (files.length > 0) onFiles(files);
  });
  return (
    <div className={className} {...handlers}>
      {children}
      {over && <div className={styles.drop}>{t('chat.attach.drop')}</div>}
    </div>
  );
}
