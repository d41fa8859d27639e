import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import { Failure } from '../../../api/failure';
import { folderQuery } from '../../../api/queries/files';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { LinkButton } from '../../../components/LinkButton';
import { LoadingState } from '../../../components/LoadingState';
import { BulkBar } from '../../../components/table/BulkBar';
import { listQuery } from '../../../components/table/list-state';
import { NoRows } from '../../../components/table/NoRows';
import { Pager } from '../../../components/table/Pager';
import { SearchField } from '../../../components/table/SearchField';
import tables from '../../../components/table/table.module.css';
import { useListState } from '../../../components/table/useListState';
import { useSelection } from '../../../components/table/useSelection';
import { useT } from '../../../i18n';
import { SubPage } from '../SubPage';
import { DropZone } from './DropZone';
import type { FailedFiles } from './delete-files';
import { FileCrumbs } from './FileCrumbs';
import { downloadUrl } from './FileMenu';
import styles from './files.module.css';
import { FileTable } from './FileTable';
import { MoveDialog } from './MoveDialog';
import { NewEntry } from './NewEntry';
import { NoSpaceDialog } from './NoSpaceDialog';
import { cleanPath } from './paths';
import { SpaceUsed } from './SpaceUsed';
import { UploadButtons } from './UploadButtons';
import { UploadPanel } from './UploadPanel';
import { useFileActions } from './useFileActions';

const FILTERS: readonly string[] = [];

/** The workspace of the user's agent, folder by folder. */
export function FilesPage(): ReactNode {
  const t = useT();
  const search: Record<string, unknown> = useSearch({ strict: false });
  const folder = cleanPath(typeof search.path === 'string' ? search.path : '') ?? '';
  const control = useListState(FILTERS);
  const { data, error, refetch, isPlaceholderData } = useQuery(folderQuery(folder, listQuery(control.state)));
  const selection = useSelection(`${folder}\u0000${control.state.search}`);
  const actions = useFileActions();
  const [moved, setMoved] = useState<string[]>();
  const [noSpace, setNoSpace] = useState<FailedFiles>();
  const remove = (paths: string[]): Promise<void> => actions.remove(paths).then(setNoSpace);
  const chosen = [...selection.ids];
  const shown = isPlaceholderData && data?.path !== folder ? undefined : data;
  return (
    <SubPage
      title={t('files.title')}
      actions={<LinkButton to="/manage/files/trash">{t('files.trash')}</LinkButton>}
    >
      <DropZone folder={folder}>
        <div className={styles.tools}>
          <FileCrumbs path={folder} />
          <span className="grow" />
          <SearchField
            value={control.state.search}
            label={t('files.search')}
            onChange={(words) => control.change({ search: words }, { replace: true })}
          />
          <UploadButtons folder={folder} />
          <NewEntry folder={folder} actions={actions} />
        </div>
        <UploadPanel />
        {error && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
        <div className={tables.frame} aria-busy={shown === undefined || isPlaceholderData}>
          {shown && shown.total > 0 && (
            <BulkBar selection={selection} total={chosen.length}>
              <Button size="compact-sm" onClick={() => setMoved(chosen)}>
                {t('files.move')}
              </Button>
              <Button size="compact-sm" color="bad" onClick={() => void remove(chosen).then(selection.clear)}>
                {t('files.delete')}
              </Button>
            </BulkBar>
          )}
          {shown === undefined && !error && <LoadingState rows={6} />}
          {shown && shown.entries.length > 0 && (
            <FileTable
              entries={shown.entries}
              control={control}
              selection={selection}
              actions={actions}
              onMove={setMoved}
              onDelete={(paths) => void remove(paths)}
            />
          )}
          {shown?.entries.length === 0 && (
            <NoRows
              control={control}
              empty={<EmptyState title={t('files.none')} text={t('files.none.text')} />}
            />
          )}
        </div>
        {shown && <Pager page={shown} onPage={(page) => control.change({ page })} />}
        {shown?.truncated && <small>{t('files.truncated')}</small>}
        <div className={styles.foot}>
          {shown && <SpaceUsed files={shown} />}
          <span>{t('files.drop.here')}</span>
          <span className="grow" />
          <a href={downloadUrl(folder)} download>
            {t('files.download.all')}
          </a>
        </div>
      </DropZone>
      {moved && (
        <MoveDialog
          paths={moved}
          actions={actions}
          onClose={() => {
            setMoved(undefined);
            selection.clear();
          }}
        />
      )}
      {noSpace && <NoSpaceDialog files={noSpace} actions={actions} onClose={() => setNoSpace(undefined)} />}
    </SubPage>
  );
}
