import { ActionIcon, Menu } from '@mantine/core';
import IconDots from '@tabler/icons-react/icons/IconDots';
import type { ReactNode } from 'react';

import { queryText } from '../../../api/client';
import type { Schemas } from '../../../api/types';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import { ownUrl } from '../../../prefix';
import styles from './files.module.css';

interface Props {
  entry: Schemas['FileEntry'];
  path: string;
  onRename: () => void;
  onMove: () => void;
  onDelete: () => void;
}

/** Address from which a file, or a folder as a zip file, is downloaded. */
export function downloadUrl(path: string): string {
  return ownUrl(`/api/files/download${queryText({ path })}`);
}

/** Actions for a file or folder. */
export function FileMenu({ entry, path, onRename, onMove, onDelete }: Props): ReactNode {
  const t = useT();
  const readable = entry.is_dir || entry.type === 'file';
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={t('object.more', { name: visibleText(entry.name) })}
        >
          <IconDots size={16} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {readable && (
          <Menu.Item component="a" href={downloadUrl(path)} download>
            {t(entry.is_dir ? 'files.download.zip' : 'files.download')}
          </Menu.Item>
        )}
        <Menu.Item onClick={onRename}>{t('files.rename')}</Menu.Item>
        <Menu.Item onClick={onMove}>{t('files.move')}</Menu.Item>
        <Menu.Divider />
        <Menu.Item className={styles.danger} onClick={onDelete}>
          {t('files.delete')}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
