import { Button, Table } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { trashQuery } from '../../../api/queries/files';
import type { Schemas } from '../../../api/types';
import { ActionPreview } from '../../../components/ActionPreview';
import { Bytes } from '../../../components/Bytes';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { LinkButton } from '../../../components/LinkButton';
import { LoadingState } from '../../../components/LoadingState';
import { Pager } from '../../../components/table/Pager';
import tables from '../../../components/table/table.module.css';
import { Time } from '../../../components/Time';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import { SubPage } from '../SubPage';
import { EmptyTrash } from './EmptyTrash';
import { copyName } from './paths';

/** Brings an entry back; where something has its place, under another name. */
async function restoreEntry(entry: Schemas['TrashEntry']): Promise<string> {
  const asked = { id: entry.id, to: entry.path === null ? entry.name : undefined };
  try {
    return (await post<Schemas['FilesRestored']>('/api/files/restore', asked)).path;
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.code !== 'already_exists') throw thrown;
    const path = entry.path ?? entry.name;
    const to = path.slice(0, path.length - entry.name.length) + copyName(entry.name, new Date());
    return (await post<Schemas['FilesRestored']>('/api/files/restore', { id: entry.id, to })).path;
  }
}

/** The former path of an entry, else its name. */
function nameIn({ path, name }: Schemas['TrashEntry']): string {
  return visibleText(path ?? name);
}

/** Deleted files that can be restored. */
export function TrashPage(): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  const [page, setPage] = useState(1);
  const [gone, setGone] = useState<Schemas['TrashEntry']>();
  const { data, error, refetch } = useQuery(trashQuery(page));
  const refresh = (): Promise<void> => client.invalidateQueries({ queryKey: ['files'] });
  const restore = useMutation({
    mutationFn: restoreEntry,
    onSuccess: (path) => toasts.done(t('files.restored.to', { path: visibleText(path) })),
    onError: (thrown) => toasts.fail(t('files.restore.failed'), Failure.from(thrown)),
    onSettled: refresh,
  });
  return (
    <SubPage
      title={t('files.trash')}
      text={t('trash.text')}
      actions={
        <>
          {data && data.total > 0 && <EmptyTrash />}
          <LinkButton to="/manage/files">{t('files.title')}</LinkButton>
        </>
      }
    >
      {error && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {(data !== undefined || !error) && (
        <div className={tables.frame}>
          {data === undefined && <LoadingState rows={4} />}
          {data?.entries.length === 0 && <EmptyState title={t('trash.none')} />}
          {data && data.entries.length > 0 && (
            <Table aria-label={t('files.trash')} className={tables.table} horizontalSpacing={10}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t('trash.was')}</Table.Th>
                  <Table.Th className="num">{t('files.size')}</Table.Th>
                  <Table.Th data-drop={1}>{t('trash.deleted')}</Table.Th>
                  <Table.Th data-drop={2}>{t('trash.removed')}</Table.Th>
                  <Table.Th>
                    <span className="visually-hidden">{t('files.actions')}</span>
                  </Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {data.entries.map((entry) => (
                  <Table.Tr key={entry.id}>
                    <Table.Td>{nameIn(entry)}</Table.Td>
                    <Table.Td className="num dim">
                      <Bytes value={entry.size} />
                    </Table.Td>
                    <Table.Td data-drop={1}>
                      <Time at={entry.deleted_at} />
                    </Table.Td>
                    <Table.Td data-drop={2}>
                      <Time at={entry.removed_after} />
                    </Table.Td>
                    <Table.Td className="num nowrap">
                      <Button
                        size="compact-sm"
                        aria-label={t('table.action', { action: t('files.bring.back'), name: nameIn(entry) })}
                        disabled={restore.isPending}
                        onClick={() => restore.mutate(entry)}
                      >
                        {t('files.bring.back')}
                      </Button>{' '}
                      <Button
                        size="compact-sm"
                        variant="subtle"
                        color="bad"
                        aria-label={t('table.action', { action: t('trash.for.ever'), name: nameIn(entry) })}
                        onClick={() => setGone(entry)}
                      >
                        {t('trash.for.ever')}
                      </Button>
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )}
        </div>
      )}
      {data && <Pager page={data} onPage={setPage} />}
      <ActionPreview
        opened={gone !== undefined}
        onClose={() => setGone(undefined)}
        title={t('trash.title', { name: visibleText(gone?.name ?? '') })}
        previewKey={['trash', gone?.id]}
        preview={() => Promise.resolve(gone)}
        verb={() => t('trash.for.ever')}
        danger
        act={async (entry) => {
          if (entry) await post('/api/files/delete', { path: `.trash/${entry.id}`, permanent: true });
          await refresh();
        }}
      >
        {() => <p>{t('trash.warning')}</p>}
      </ActionPreview>
    </SubPage>
  );
}
