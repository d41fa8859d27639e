import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../../api/failure';
import { folderQuery } from '../../../api/queries/files';
import { Bytes } from '../../../components/Bytes';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { Time } from '../../../components/Time';
import { useT } from '../../../i18n';
import { DropZone } from './DropZone';
import { FileName } from './FileName';
import styles from './files.module.css';
import { NewEntry } from './NewEntry';
import { SpaceUsed } from './SpaceUsed';
import { UploadButtons } from './UploadButtons';
import { UploadPanel } from './UploadPanel';
import { useFileActions } from './useFileActions';

/** Entries that the overview shows. */
const SHOWN = 5;

/** The top of the workspace on the overview. */
export function FilesCard(): ReactNode {
  const t = useT();
  const actions = useFileActions();
  const { data, error, refetch } = useQuery(folderQuery('', { page_size: SHOWN }));
  return (
    <DropZone folder="" className="card">
      <div className={styles.head}>
        <h2 className="grow">
          <Link to="/manage/files">{t('files.title')}</Link>
        </h2>
        <UploadButtons folder="" />
        <NewEntry folder="" actions={actions} />
      </div>
      <UploadPanel />
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingState rows={3} />}
      {data?.entries.length === 0 && <p className="dim">{t('files.none.text')}</p>}
      <ul className={styles.brief}>
        {data?.entries.map((entry) => (
          <li key={entry.name}>
            <FileName entry={entry} />
            <span className="dim num">{entry.type === 'file' && <Bytes value={entry.size} />}</span>
            <span className="dim num">
              <Time at={entry.modified_at} />
            </span>
          </li>
        ))}
      </ul>
      <div className={styles.foot}>
        {data && <SpaceUsed files={data} />}
        <span>{t('files.drop.here')}</span>
        <span className="grow" />
        {data && data.total > SHOWN && (
          <Link to="/manage/files">{t('files.all', { count: data.total })}</Link>
        )}
      </div>
    </DropZone>
  );
}
