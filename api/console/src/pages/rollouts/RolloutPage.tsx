import { Menu } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import { failedUsersQuery, rolloutQuery } from '../../api/queries/rollouts';
import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { ObjectHeader } from '../../components/ObjectHeader';
import { listQuery } from '../../components/table/list-state';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { useReadAgain } from '../../modules/useReadAgain';
import { visibleText } from '../../modules/visible-text';
import { changesOf } from './changes';
import { rolloutCommands } from './commands';
import { FailedUsers } from './FailedUsers';
import { goalOf, stateOfRollout, titleOf } from './phases';
import { type AskedChange, RolloutButtons } from './RolloutButtons';
import { RolloutDialogs } from './RolloutDialogs';
import { RolloutFacts } from './RolloutFacts';
import { RolloutSentence } from './RolloutSentence';
import { RolloutSteps } from './RolloutSteps';
import { RolloutUsers } from './RolloutUsers';
import styles from './rollouts.module.css';

const route = getRouteApi('/admin/rollouts/$id');
const FILTERS: readonly string[] = [];
/** Failed users whose last lines are shown. */
const MOST_FAILED = 5;

/** A rollout: how far it is, who failed and why, what can be done, and the result of each user. */
export function RolloutPage(): ReactNode {
  const t = useT();
  const { id } = route.useParams();
  const control = useListState(FILTERS);
  const query = useQuery(rolloutQuery(id, listQuery(control.state)));
  const { data, error, refetch } = query;
  const ended = typeof data?.rollout.finished_at === 'string';
  useReadAgain(keys.object('rollout', id), ended);
  const { generation = 0, progress } = data?.rollout ?? {};
  const count = progress?.failed ?? 0;
  const { data: found } = useQuery(failedUsersQuery(id, generation, count, MOST_FAILED));
  const [asked, setAsked] = useState<AskedChange>();
  const list = <Link to="/admin/rollouts">{t('section.rollouts')}</Link>;
  const failure = error ? Failure.from(error) : undefined;
  if (failure?.status === 404)
    return <EmptyState title={t('rollout.none')} text={t('rollout.none.text')} action={list} />;
  if (data === undefined)
    return failure ? (
      <ErrorState failure={failure} onRetry={() => void refetch()} />
    ) : (
      <LoadingState rows={5} />
    );
  const { rollout } = data;
  const failed = count > 0 ? (found ?? []) : [];
  const name = t(titleOf(rollout), { goal: visibleText(goalOf(rollout)) });
  return (
    <>
      <ObjectHeader
        crumbs={
          <>
            {list} / {name}
          </>
        }
        name={name}
        state={stateOfRollout(rollout)}
        menu={
          changesOf(rollout).canCancel ? (
            <Menu.Item onClick={() => setAsked('cancel')}>{t('rollout.cancel')}…</Menu.Item>
          ) : undefined
        }
        actions={<RolloutButtons rollout={rollout} onAsk={setAsked} />}
      />
      {failure && <ErrorState failure={failure} onRetry={() => void refetch()} />}
      <div className={styles.columns}>
        <div className="stack">
          <RolloutSentence
            rollout={rollout}
            users={data.users}
            failed={failed.map(({ username }) => username)}
          />
          <FailedUsers users={failed} total={rollout.progress.failed} />
          <RolloutUsers id={id} query={query} control={control} rollout={rollout} />
        </div>
        <section className={`card ${styles.card ?? ''}`}>
          <h2>{t('rollout.steps')}</h2>
          <RolloutSteps rollout={rollout} />
          <RolloutFacts rollout={rollout} />
        </section>
      </div>
      <CommandLine commands={rolloutCommands(rollout)} />
      <RolloutDialogs rollout={rollout} asked={asked} onClose={() => setAsked(undefined)} />
    </>
  );
}
