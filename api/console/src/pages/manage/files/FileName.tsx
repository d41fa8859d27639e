import IconFile from '@tabler/icons-react/icons/IconFile';
import IconFolder from '@tabler/icons-react/icons/IconFolder';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../../api/types';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from './files.module.css';

/** Name of a file or folder: a link that opens it, where it can be opened. */
export function FileName({ entry }: { entry: Schemas['FileEntry'] }): ReactNode {
  const t = useT();
  const name = visibleText(entry.name);
  const path = entry.rel_path;
  const Icon = entry.is_dir ? IconFolder : IconFile;
  const opens = entry.is_dir || entry.type === 'file';
  return (
    <span className={styles.name}>
      <Icon size={16} aria-hidden />
      {opens && entry.is_dir && (
        <Link to="/manage/files" search={{ path }}>
          {name}
        </Link>
      )}
      {opens && !entry.is_dir && (
        <Link to="/manage/files/open" search={{ path }}>
          {name}
        </Link>
      )}
      {!opens && (
        <span>
          {name} <small>{entry.type === 'symlink' ? t('files.link') : t('files.special')}</small>
        </span>
      )}
    </span>
  );
}
