import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';

import { Failure } from '../../../api/failure';
import { previewRollout, type RolloutRequest } from '../../../api/queries/rollout-preview';
import { CommandLine } from '../../../components/CommandLine';
import type { Search } from '../../../components/table/list-state';
import { useT } from '../../../i18n';
import { useImageChoices } from '../../images/useImageChoices';
import styles from '../rollouts.module.css';
import { CareFields } from './CareFields';
import { ImageFields } from './ImageFields';
import { fieldOf, readPlan, requestOf, type RolloutPlan, startCommand, writePlan } from './plan';
import { RolloutEffect } from './RolloutEffect';
import { WhomFields } from './WhomFields';

/** The effect is asked for after a pause in typing. */
const PAUSE = 350;

/** Form for a rollout: image, users, care; beside it what would happen. Nothing is done before its button. */
export function NewRolloutPage(): ReactNode {
  const t = useT();
  const navigate = useNavigate();
  const search: Search = useSearch({ strict: false });
  const [plan, setPlan] = useState(() => readPlan(search));
  const choices = useImageChoices();
  const query = JSON.stringify(writePlan(plan));
  useEffect(() => {
    const next = JSON.parse(query) as Search;
    void navigate({ to: '.', search: (() => next) as never, replace: true, resetScroll: false });
  }, [navigate, query]);
  const wanted = JSON.stringify(requestOf(plan) ?? null);
  const [asked] = useDebouncedValue(wanted, PAUSE);
  const request = JSON.parse(asked) as RolloutRequest | null;
  const effect = useQuery({
    queryKey: ['preview', 'rollout', asked],
    queryFn: ({ signal }) => {
      if (request === null) throw new Failure(0, 'unexpected', '');
      return previewRollout(request, signal);
    },
    enabled: request !== null,
    placeholderData: keepPreviousData,
    staleTime: 0,
    gcTime: 0,
    retry: false,
  });
  const isCurrent = asked === wanted && !effect.isFetching;
  const failure = effect.error && isCurrent ? Failure.from(effect.error) : undefined;
  const refused = failure && fieldOf(failure.details.field, plan.who);
  const errorOf = (field: keyof RolloutPlan): string | undefined =>
    refused === field ? failure?.message : undefined;
  const change = (part: Partial<RolloutPlan>): void => setPlan((old) => ({ ...old, ...part }));
  const users = isCurrent && failure === undefined ? (effect.data?.users ?? undefined) : undefined;
  const command = request === null ? undefined : startCommand(plan, users);
  return (
    <>
      <header className={styles.title}>
        <div>
          <small>
            <Link to="/admin/rollouts">{t('section.rollouts')}</Link> / {t('rollout.new.crumb')}
          </small>
          <h1>{t('rollout.new.title')}</h1>
          <small>{t('rollout.new.text')}</small>
        </div>
      </header>
      <div className={styles.columns}>
        <form className="stack" autoComplete="off" onSubmit={(event) => event.preventDefault()}>
          <ImageFields plan={plan} choices={choices} errorOf={errorOf} onChange={change} />
          <WhomFields plan={plan} errorOf={errorOf} onChange={change} />
          <CareFields plan={plan} errorOf={errorOf} onChange={change} />
        </form>
        <RolloutEffect
          plan={plan}
          repository={choices.repository}
          request={wanted === 'null' ? undefined : (request ?? undefined)}
          effect={effect.data}
          isCurrent={isCurrent}
          failure={failure}
          isPlaced={refused !== undefined}
          onRetry={() => void effect.refetch()}
        />
      </div>
      {command !== undefined && <CommandLine commands={[command]} />}
    </>
  );
}
