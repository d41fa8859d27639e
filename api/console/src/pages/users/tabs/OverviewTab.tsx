import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { describeQuery, type Described } from '../../../api/queries/users';
import { CommandLine } from '../../../components/CommandLine';
import styles from '../../../components/detail.module.css';
import { LoadingState } from '../../../components/LoadingState';
import { ConditionsCard } from '../../../modules/objects/ConditionsCard';
import { StepsCard } from '../../../modules/objects/StepsCard';
import { userCommands } from '../commands';
import { useUserDetail } from '../useUserDetail';
import { useUserName } from '../useUserName';
import { AboutCard } from './AboutCard';
import { CompareCard } from './CompareCard';

/** Desired beside observed, conditions, next steps. */
export function OverviewTab(): ReactNode {
  const name = useUserName();
  const detail = useUserDetail(name);
  const { user, container } = detail;
  const { data: config } = useQuery(describeQuery('agent-config', name));
  const { data: skills } = useQuery(describeQuery('skill-set', name));
  if (user === undefined || container === undefined) return <LoadingState rows={6} />;
  const parts = [container, config, skills, user].filter((part): part is Described => part !== undefined);
  return (
    <div className={styles.columns}>
      <div className="stack">
        <CompareCard detail={detail} config={config} skills={skills} />
        <StepsCard object={container} />
        <ConditionsCard parts={parts} told={user.health?.reason} />
      </div>
      <div className="stack">
        <AboutCard name={name} detail={detail} />
        <CommandLine commands={userCommands(name, user.health?.object ?? `container/${name}`)} />
      </div>
    </div>
  );
}
