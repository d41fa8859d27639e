import { Button } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { imagesQuery, refreshRegistry, registryQuery } from '../../api/queries/images';
import { EmptyState } from '../../components/EmptyState';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { withoutFilters } from './list-control';
import { RegistryFault } from './RegistryFault';
import { RepositoryForm } from './RepositoryForm';
import styles from './images.module.css';
import { useTagColumns } from './useTagColumns';

/** `image`: a repository instead of the configured one. */
const FILTERS = ['image'] as const;
const ALL_IMAGES = { all: true };

/** Tags in the registry, newest first: which of them are on the engine, and pulling one. */
export function RegistryTab(): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const control = useListState(FILTERS);
  const image = control.state.filters.image?.[0] ?? '';
  const { data, error, isPlaceholderData, isFetching } = useQuery(registryQuery(listQuery(control.state)));
  const { data: local } = useQuery(imagesQuery(ALL_IMAGES));
  const [failure, setFailure] = useState<Failure>();
  const [asking, setAsking] = useState(false);
  const columns = useTagColumns(data?.repository, local?.images);
  const refresh = async (): Promise<void> => {
    setAsking(true);
    setFailure(undefined);
    try {
      await refreshRegistry(image);
    } catch (thrown) {
      setFailure(Failure.from(thrown));
    }
    await client.invalidateQueries({ queryKey: ['registry'] });
    setAsking(false);
  };
  const fault = failure ?? (error ? Failure.from(error) : undefined);
  const isBroken = fault !== undefined && !asking;
  return (
    <>
      <div className={styles.head}>
        <RepositoryForm
          key={image}
          image={image}
          onChoose={(next) => control.change({ filters: next === '' ? {} : { image: [next] } })}
        />
        {!isBroken && (
          <Button disabled={asking} onClick={() => void refresh()}>
            {asking ? t('registry.asking') : t('registry.refresh')}
          </Button>
        )}
      </div>
      {isBroken ? (
        <RegistryFault failure={fault} onRetry={() => void refresh()} />
      ) : (
        <>
          <ListFilters control={withoutFilters(control)} searchLabel={t('registry.search')} />
          <ServerTable
            label={t('images.tab.registry')}
            columns={columns}
            rows={data?.tags.map((tag) => ({ tag }))}
            page={data}
            isPrevious={isPlaceholderData && isFetching}
            rowId={({ tag }) => tag}
            control={withoutFilters(control)}
            onRetry={() => void refresh()}
            empty={<EmptyState title={t('registry.none')} text={t('registry.none.text')} />}
          />
        </>
      )}
    </>
  );
}
