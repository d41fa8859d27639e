import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';

import { ownSkillsQuery } from '../../api/queries/own';
import type { Schemas } from '../../api/types';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { imageVersion } from './image-version';

interface Props {
  agent: Schemas['OwnContainer'];
  running: boolean;
}

/** Since when the agent runs, its version, and how many skills it has. */
export function AgentFacts({ agent, running }: Props): ReactNode {
  const t = useT();
  const { data: skills } = useQuery(ownSkillsQuery);
  const facts: ReactNode[] = [];
  if (running && agent.started_at) {
    facts.push(<Rich k="agent.since" values={{ time: <Time at={agent.started_at} as="clock" /> }} />);
  }
  const version = imageVersion(agent.image);
  if (version !== '') facts.push(t('agent.version', { version }));
  if (agent.debug) facts.push(t('agent.debug'));
  if (skills !== undefined) {
    facts.push(<Link to="/manage/skills">{t('agent.skills', { count: skills.total })}</Link>);
  }
  return (
    <small>
      {facts.map((fact, at) => (
        <Fragment key={at}>
          {at > 0 && ' · '}
          {fact}
        </Fragment>
      ))}
    </small>
  );
}
