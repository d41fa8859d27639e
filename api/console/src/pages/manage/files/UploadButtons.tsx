import { Button, Menu } from '@mantine/core';
import IconChevronDown from '@tabler/icons-react/icons/IconChevronDown';
import { type ChangeEvent, type ReactNode, useRef } from 'react';

import { useT } from '../../../i18n';
import styles from './files.module.css';
import { pickedByInput } from './picked-files';
import { useStartUpload } from './useUploads';

/** Buttons that upload files or a whole folder. */
export function UploadButtons({ folder }: { folder: string }): ReactNode {
  const t = useT();
  const start = useStartUpload(folder);
  const files = useRef<HTMLInputElement>(null);
  const tree = useRef<HTMLInputElement>(null);
  const take = (event: ChangeEvent<HTMLInputElement>): void => {
    const { files: list } = event.currentTarget;
    if (list !== null && list.length > 0) start(pickedByInput(list));
    // The same files can be chosen again.
    event.currentTarget.value = '';
  };
  return (
    <span className={styles.split}>
      <Button onClick={() => files.current?.click()}>{t('upload.upload')}</Button>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button aria-label={t('upload.more')} className={styles.splitMore}>
            <IconChevronDown size={16} aria-hidden />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => files.current?.click()}>{t('upload.files')}</Menu.Item>
          <Menu.Item onClick={() => tree.current?.click()}>{t('upload.folder')}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <input ref={files} type="file" multiple hidden onChange={take} aria-label={t('upload.files')} />
      <input
        ref={(input) => {
          tree.current = input;
          if (input) input.webkitdirectory = true;
        }}
        type="file"
        hidden
        onChange={take}
        aria-label={t('upload.folder')}
      />
    </span>
  );
}
