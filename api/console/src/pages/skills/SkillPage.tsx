import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { skillQuery } from '../../api/queries/skills';
import { describeQuery } from '../../api/queries/users';
import { CommandLine } from '../../components/CommandLine';
import styles from '../../components/detail.module.css';
import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { ObjectHeader } from '../../components/ObjectHeader';
import { Sentence } from '../../components/Sentence';
import { useT } from '../../i18n';
import { ConditionsCard } from '../../modules/objects/ConditionsCard';
import { EventsCard } from '../../modules/objects/EventsCard';
import { RelatedCard } from '../../modules/objects/RelatedCard';
import { plainWord } from '../../modules/plain-word';
import { readyOf, stateOf } from '../../modules/state';
import { visibleText } from '../../modules/visible-text';
import { SkillBindings } from './SkillBindings';
import { SkillFacts } from './SkillFacts';
import { SkillVersions } from './SkillVersions';

const route = getRouteApi('/admin/skills/$name');

/** A skill: state, versions, who has it through what, where it comes from. */
export function SkillPage(): ReactNode {
  const t = useT();
  const { name } = route.useParams();
  const { data: skill, error, refetch } = useQuery(skillQuery(name));
  const { data: object } = useQuery(describeQuery('skill', name));
  const list = <Link to="/admin/skills">{t('section.skills')}</Link>;
  if (error && !skill) return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (skill === null) {
    return <EmptyState title={t('skill.none', { name })} text={t('skill.none.text')} action={list} />;
  }
  if (skill === undefined) return <LoadingState rows={6} />;
  const ready = readyOf(skill.conditions);
  const shown = visibleText(name);
  const word = plainWord(name);
  return (
    <>
      <ObjectHeader
        crumbs={
          <>
            {list} / {shown}
          </>
        }
        name={shown}
        state={stateOf(skill.conditions)}
      />
      {ready && ready.status !== 'True' && (
        <div className={styles.sentence}>
          <Sentence condition={{ ...ready, since: ready.last_transition_at }} />
        </div>
      )}
      <p className={styles.lead}>
        {visibleText(skill.description)}{' '}
        <span className="dim">{t('skill.users', { count: skill.user_count })}</span>
      </p>
      <div className={styles.columns}>
        <div className="stack">
          <SkillBindings skill={skill} />
          <SkillVersions name={name} />
          {object && <ConditionsCard parts={[object]} told={ready?.reason} />}
          {object && <EventsCard object={object} />}
        </div>
        <div className="stack">
          <SkillFacts skill={skill} />
          {object && <RelatedCard object={object} isOwnPage />}
          <CommandLine
            commands={[
              `agentyard skill show ${word}`,
              `agentyard skill bind ${word} --group GROUP`,
              `agentyard skill download ${word}`,
              `agentyard skill rollback ${word}`,
              `agentyard describe skill/${word}`,
            ]}
          />
        </div>
      </div>
    </>
  );
}
