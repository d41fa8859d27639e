import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { Failure } from '../../../api/failure';
import { folderQuery } from '../../../api/queries/files';
import { DialogFrame } from '../../../components/DialogFrame';
import dialog from '../../../components/dialog.module.css';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from './files.module.css';
import { joinPath, nameOf, parentOf } from './paths';
import type { FileActions } from './useFileActions';

interface Props {
  paths: string[];
  actions: FileActions;
  onClose: () => void;
}

/** Failures that are shown; the others are counted. */
const SHOWN = 5;

/** A file that was not moved. */
interface Unmoved {
  path: string;
  /** The folder it was to be moved to, in the user's words. */
  folder: string;
  failure: Failure;
}

/** Asks for the folder that files are moved to. */
export function MoveDialog({ paths: wanted, actions, onClose }: Props): ReactNode {
  const t = useT();
  const [paths, setPaths] = useState(wanted);
  const [target, setTarget] = useState(() => parentOf(paths[0] ?? ''));
  const [unmoved, setUnmoved] = useState<Unmoved[]>([]);
  const [busy, setBusy] = useState(false);
  const { data, error } = useQuery(folderQuery(target, { page_size: 200 }));
  const folders = (data?.path === target ? data.entries : []).filter(
    ({ is_dir: isFolder, rel_path: path }) => isFolder && !paths.includes(path),
  );
  const same = paths.every((path) => parentOf(path) === target);
  const name = target === '' ? t('files.top') : visibleText(nameOf(target));
  const move = async (): Promise<void> => {
    setBusy(true);
    const failed: Unmoved[] = [];
    for (const path of paths) {
      if (parentOf(path) === target) continue;
      try {
        await actions.move(path, joinPath(target, nameOf(path)));
      } catch (thrown) {
        failed.push({ path, folder: name, failure: Failure.from(thrown) });
      }
    }
    setBusy(false);
    setUnmoved(failed);
    if (failed.length === 0) onClose();
    else setPaths(failed.map(({ path }) => path));
  };
  return (
    <DialogFrame
      opened
      title={t('files.move.title', { count: paths.length })}
      onClose={busy ? undefined : onClose}
    >
      <div className={styles.target}>
        <strong>{target === '' ? name : visibleText(target)}</strong>
        {target !== '' && (
          <Button size="compact-sm" onClick={() => setTarget(parentOf(target))}>
            {t('files.up')}
          </Button>
        )}
      </div>
      {error && <ErrorState failure={Failure.from(error)} />}
      {data?.path !== target && !error && <LoadingState rows={3} />}
      {data?.path === target && folders.length === 0 && <p className="dim">{t('files.no.folders')}</p>}
      <ul className={styles.folders}>
        {folders.map((folder) => (
          <li key={folder.name}>
            <Button variant="subtle" size="compact-sm" onClick={() => setTarget(folder.rel_path)}>
              {visibleText(folder.name)}
            </Button>
          </li>
        ))}
      </ul>
      {unmoved.slice(0, SHOWN).map(({ path, folder, failure }) => (
        <ErrorState
          key={path}
          title={t('files.move.failed', { name: visibleText(nameOf(path)), folder })}
          failure={failure}
        />
      ))}
      {unmoved.length > SHOWN && <p>{t('files.move.failed.more', { count: unmoved.length - SHOWN })}</p>}
      {unmoved.some(({ failure }) => failure.code === 'already_exists') && <p>{t('files.move.taken')}</p>}
      <div className={dialog.buttons}>
        <Button disabled={busy} onClick={onClose}>
          {t('preview.cancel')}
        </Button>
        <Button variant="filled" disabled={same || busy} onClick={() => void move()}>
          {busy ? t('preview.working') : t('files.move.to', { name })}
        </Button>
      </div>
    </DialogFrame>
  );
}
