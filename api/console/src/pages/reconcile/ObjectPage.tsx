import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { describeQuery } from '../../api/queries/users';
import { CommandLine } from '../../components/CommandLine';
import styles from '../../components/detail.module.css';
import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { useT } from '../../i18n';
import { CompareFacts } from '../../modules/objects/CompareFacts';
import { ConditionsCard } from '../../modules/objects/ConditionsCard';
import { EngineReport } from '../../modules/objects/EngineReport';
import { EventsCard } from '../../modules/objects/EventsCard';
import { LastEnds } from '../../modules/objects/LastEnds';
import { ObservedFacts } from '../../modules/objects/ObservedFacts';
import { RelatedCard } from '../../modules/objects/RelatedCard';
import { StepsCard } from '../../modules/objects/StepsCard';
import { readyOf } from '../../modules/state';
import { visibleText } from '../../modules/visible-text';
import { HeaderCard } from './HeaderCard';
import { objectCommands } from './object-commands';
import { ObjectHead } from './ObjectHead';
import { ObjectSentence } from './ObjectSentence';

const route = getRouteApi('/admin/reconcile/$kind/$name');

/** An object of any kind: its state and cause, what comes next, desired beside observed, events, all facts. */
export function ObjectPage(): ReactNode {
  const t = useT();
  const { kind, name } = route.useParams();
  const object = `${kind}/${name}`;
  const { data, error, refetch } = useQuery(describeQuery(kind, name));
  if (error && data === undefined) {
    const failure = Failure.from(error);
    if (failure.status !== 404) return <ErrorState failure={failure} onRetry={() => void refetch()} />;
    const events = (
      <Link to="/admin/events" search={{ object } as never}>
        {t('object.none.events')}
      </Link>
    );
    return (
      <EmptyState
        title={t('object.none', { name: visibleText(object) })}
        text={t('object.none.text')}
        action={events}
      />
    );
  }
  if (data === undefined) return <LoadingState rows={6} />;
  const { ends = [] } = (data.observed ?? {}) as Partial<Pick<Parameters<typeof LastEnds>[0], 'ends'>>;
  return (
    <>
      <ObjectHead key={object} object={data} />
      <ObjectSentence object={data} />
      <div className={styles.columns}>
        <div className="stack">
          <CompareFacts object={data} />
          <StepsCard object={data} />
          <ConditionsCard parts={[data]} told={readyOf(data.conditions)?.reason} />
          <LastEnds ends={ends} />
          <EventsCard object={data} />
          {kind === 'container' && <EngineReport key={name} name={name} />}
        </div>
        <div className="stack">
          <RelatedCard object={data} />
          <HeaderCard object={data} />
          <ObservedFacts object={data} />
          <CommandLine commands={objectCommands(data)} />
        </div>
      </div>
    </>
  );
}
