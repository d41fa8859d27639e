import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { get } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { folderQuery } from '../../../api/queries/files';
import type { Schemas } from '../../../api/types';
import { DialogFrame } from '../../../components/DialogFrame';
import dialog from '../../../components/dialog.module.css';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { Time } from '../../../components/Time';
import { Rich, useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import { CodeEditor } from './CodeEditor';
import styles from './files.module.css';
import { parentOf } from './paths';
import type { TextSave } from './useTextSave';

interface Props {
  file: Schemas['TextFile'];
  save: TextSave;
  /** Takes over the text that was made in the comparison. */
  onMerged: (text: string) => void;
  onKept: (path: string) => void;
}

/** Asks what to do with a file that was changed since it was opened: compare, overwrite, keep both. */
export function SaveConflict({ file, save, onMerged, onKept }: Props): ReactNode {
  const t = useT();
  const [compare, setCompare] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const name = visibleText(file.filename);
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['files', 'conflict', file.path],
    queryFn: ({ signal }) => get<Schemas['TextFile']>('/api/files/edit', { path: file.path }, { signal }),
    gcTime: 0,
    staleTime: 0,
  });
  const { data: folder } = useQuery(
    folderQuery(parentOf(file.path), { search: file.filename, page_size: 200 }),
  );
  const entry = folder?.entries.find(({ rel_path: path }) => path === file.path);
  const [again, setAgain] = useState(false);
  const close = (): void => {
    if (compare) onMerged(save.latest());
    save.leaveConflict();
  };
  const overwrite = async (): Promise<void> => {
    if (!data) return;
    if (compare) onMerged(save.latest());
    setAgain(false);
    if (await save.overwrite(data.etag)) return;
    // The comparison begins again with the file as it is now.
    await refetch();
    setAgain(true);
  };
  const keepBoth = (): void => {
    save.keepBoth().then(onKept, (thrown: unknown) => setFailure(Failure.from(thrown)));
  };
  return (
    <DialogFrame opened title={t('clash.title', { name })} onClose={close} size={compare ? 1080 : 600}>
      <p>
        {entry ? (
          <Rich k="clash.when" values={{ time: <Time at={entry.modified_at} /> }} />
        ) : (
          t('clash.changed')
        )}
      </p>
      {error && <ErrorState failure={Failure.from(error)} />}
      {again && <p role="alert">{t('clash.again')}</p>}
      {save.failure && <ErrorState title={t('form.failed')} failure={save.failure} />}
      {failure && <ErrorState title={t('form.failed')} failure={failure} />}
      {compare && !data && <LoadingState rows={5} />}
      {compare && data && (
        <>
          <div className={styles.sides}>
            <span>{t('clash.theirs')}</span>
            <span>{t('clash.mine')}</span>
          </div>
          <CodeEditor
            key={data.etag}
            name={file.filename}
            text={save.latest()}
            other={data.content}
            className={styles.compare}
            onChange={save.change}
            onSave={() => void overwrite()}
          />
        </>
      )}
      <div className={dialog.buttons}>
        <Button onClick={close}>{t('clash.edit')}</Button>
        {!compare && <Button onClick={() => setCompare(true)}>{t('clash.compare')}</Button>}
        <Button onClick={keepBoth}>{t('clash.both')}</Button>
        <Button
          variant="filled"
          color="bad"
          disabled={!data || isFetching || save.saving}
          onClick={() => void overwrite()}
        >
          {t('clash.overwrite')}
        </Button>
      </div>
    </DialogFrame>
  );
}
