import { Button, Menu } from '@mantine/core';
import IconChevronDown from '@tabler/icons-react/icons/IconChevronDown';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import { get, post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import type { Schemas } from '../../../api/types';
import { useT } from '../../../i18n';
import styles from './files.module.css';
import { NameDialog } from './NameDialog';
import { joinPath } from './paths';
import type { FileActions } from './useFileActions';

interface Props {
  folder: string;
  actions: FileActions;
}

/** Makes an empty text file. Throws `already_exists` when something has the name. */
async function makeFile(folder: string, name: string): Promise<void> {
  const query = { path: folder, search: name, page_size: 200 };
  const { entries } = await get<Schemas['Files']>('/api/files', query);
  if (entries.some((entry) => entry.name === name)) throw new Failure(409, 'already_exists', '');
  await post('/api/files/edit', { path: joinPath(folder, name), content: '' });
}

/** Buttons that make a folder or a text file. */
export function NewEntry({ folder, actions }: Props): ReactNode {
  const t = useT();
  const navigate = useNavigate();
  const [asked, setAsked] = useState<'folder' | 'file'>();
  const open = (name: string): Promise<void> =>
    navigate({ to: '/manage/files/open', search: { path: joinPath(folder, name) } });
  return (
    <span className={styles.split}>
      <Button onClick={() => setAsked('folder')}>{t('files.new.folder')}</Button>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button aria-label={t('files.new')} className={styles.splitMore}>
            <IconChevronDown size={16} aria-hidden />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setAsked('folder')}>{t('files.new.folder')}</Menu.Item>
          <Menu.Item onClick={() => setAsked('file')}>{t('files.new.file')}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {asked && (
        <NameDialog
          title={t(asked === 'folder' ? 'files.new.folder' : 'files.new.file')}
          verb={t('files.make')}
          onClose={() => setAsked(undefined)}
          onName={async (name) => {
            if (asked === 'folder') await actions.makeFolder(folder, name);
            else await makeFile(folder, name).then(() => open(name));
          }}
        />
      )}
    </span>
  );
}
