import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { Failure } from '../../api/failure';
import { imagesQuery } from '../../api/queries/images';
import { EmptyState } from '../../components/EmptyState';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { DeleteImage } from './DeleteImage';
import type { Doomed } from './removal';
import { useImageColumns } from './useImageColumns';

const FILTERS = ['all'] as const;

/** Images on the engine, with the users of each. */
export function EngineTab(): ReactNode {
  const t = useT();
  const control = useListState(FILTERS);
  const { data, error, refetch, isPlaceholderData } = useQuery(imagesQuery(listQuery(control.state)));
  const [doomed, setDoomed] = useState<Doomed>();
  const columns = useImageColumns(setDoomed);
  const all = t('images.all');
  return (
    <>
      <ListFilters
        control={control}
        filters={[{ name: 'all', label: all, options: [{ value: 'true', text: all }] }]}
        searchLabel={t('images.search')}
      />
      <ServerTable
        label={t('images.tab.engine')}
        columns={columns}
        rows={data?.images}
        page={data}
        isPrevious={isPlaceholderData}
        rowId={({ full_id: id }) => id}
        control={control}
        failure={error ? Failure.from(error) : undefined}
        onRetry={() => void refetch()}
        empty={<EmptyState title={t('images.none')} text={t('images.none.text')} />}
      />
      {typeof data?.note === 'string' && <p className="dim">{data.note}</p>}
      {doomed && <DeleteImage doomed={doomed} onClose={() => setDoomed(undefined)} />}
    </>
  );
}
