import { NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { candidatesQuery, localTagsQuery } from '../../api/queries/images';
import { EmptyState } from '../../components/EmptyState';
import { LinkButton } from '../../components/LinkButton';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { saidImage, shortImage } from '../../modules/image-name';
import { CandidateGroups } from './CandidateGroups';
import styles from './images.module.css';
import { withoutFilters } from './list-control';
import { useCandidateColumns } from './useCandidateColumns';
import { useImageChoices } from './useImageChoices';

const FILTERS = ['tag'] as const;

/** Users who have another image than the newest on the engine, or than the one that was chosen. */
export function CandidatesTab(): ReactNode {
  const t = useT();
  const control = useListState(FILTERS);
  const { data: local, error: noTags, refetch: readTags } = useQuery(localTagsQuery);
  const choices = useImageChoices();
  const tag = control.state.filters.tag?.[0] ?? local?.tags[0];
  const options = [...choices.engine, ...choices.registry];
  const query = { ...listQuery(control.state), tag };
  const { data, error, refetch, isPlaceholderData } = useQuery({
    ...candidatesQuery(query),
    enabled: tag !== undefined,
  });
  const columns = useCandidateColumns();
  const plain = withoutFilters(control);
  if (tag === undefined && local !== undefined)
    return <EmptyState title={t('images.none')} text={t('images.none.text')} />;
  const image =
    data && !isPlaceholderData ? shortImage(data.target) : saidImage(tag ?? '', local?.repository);
  const failure = error ?? (tag === undefined ? noTags : null);
  const isNarrowed = control.state.search !== '';
  return (
    <>
      <div className={styles.form}>
        <NativeSelect
          label={t('candidates.image')}
          data={tag === undefined || options.includes(tag) ? options : [tag, ...options]}
          value={tag ?? ''}
          onChange={(event) => control.change({ filters: { tag: [event.currentTarget.value] } })}
        />
        {tag !== undefined && (data?.total ?? 0) > 0 && (
          <LinkButton variant="filled" to="/admin/rollouts/new" search={{ image: tag }}>
            {t('candidates.move', { image })}
          </LinkButton>
        )}
      </div>
      {data && tag !== undefined && !isNarrowed && (
        <div className={styles.lead}>
          {t('candidates.sentence', { count: data.total, image })}
          <CandidateGroups groups={data.groups} image={tag} />
        </div>
      )}
      <ListFilters control={plain} />
      <ServerTable
        label={t('images.tab.candidates')}
        columns={columns}
        rows={data?.users}
        page={data}
        isPrevious={isPlaceholderData}
        rowId={({ username }) => username}
        control={plain}
        failure={failure ? Failure.from(failure) : undefined}
        onRetry={() => void (tag === undefined ? readTags() : refetch())}
        empty={<EmptyState title={t('candidates.none', { image })} />}
      />
    </>
  );
}
