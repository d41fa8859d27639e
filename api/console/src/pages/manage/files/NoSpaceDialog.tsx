import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { ActionPreview } from '../../../components/ActionPreview';
import { useT } from '../../../i18n';
import { failureText } from '../../../i18n/failure';
import { visibleText } from '../../../modules/visible-text';
import type { FailedFiles } from './delete-files';
import styles from './files.module.css';
import { nameOf } from './paths';
import type { FileActions } from './useFileActions';

interface Props {
  files: FailedFiles;
  actions: FileActions;
  onClose: () => void;
}

/** Offers to delete files for ever for which the trash has no space. */
export function NoSpaceDialog({ files, actions, onClose }: Props): ReactNode {
  const t = useT();
  const { paths, failure } = files;
  const count = paths.length;
  const said = failureText(failure, t);
  return (
    <ActionPreview
      opened
      onClose={onClose}
      title={t('files.no.space', { count })}
      previewKey={['no-space', paths]}
      preview={() => Promise.resolve(paths)}
      verb={() => t('trash.for.ever')}
      danger
      act={actions.removeForEver}
    >
      {() => (
        <>
          <p>{t('files.no.space.text', { count })}</p>
          <ul className={styles.folders}>
            {paths.map((path) => (
              <li key={path}>{visibleText(nameOf(path))}</li>
            ))}
          </ul>
          <p lang={said.lang}>{said.text}</p>
          <p>
            <Link to="/manage/files/trash">{t('files.to.trash')}</Link>
          </p>
        </>
      )}
    </ActionPreview>
  );
}
