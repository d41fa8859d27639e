import { Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../../api/failure';
import { describeQuery } from '../../../api/queries/users';
import type { Schemas } from '../../../api/types';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { TonePill } from '../../../components/StatusPill';
import table from '../../../components/table/table.module.css';
import { useT } from '../../../i18n';
import { useUserName } from '../useUserName';
import { BindingText } from './BindingText';
import { readSkillSet } from './skill-count';

/** The skills of a user: which binding gives each, and whether it lies in the workspace. */
export function SkillsTab(): ReactNode {
  const t = useT();
  const name = useUserName();
  const { data, error, refetch } = useQuery(describeQuery('skill-set', name));
  if (error && data === undefined)
    return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={5} />;
  const { bindings, deployed } = readSkillSet(data);
  const lies = new Map(deployed.map(({ skill, digest }) => [skill, digest]));
  const bySkill = new Map<string, Schemas['SkillBinding'][]>();
  for (const binding of bindings)
    bySkill.set(binding.skill, [...(bySkill.get(binding.skill) ?? []), binding]);
  const leaving = deployed.filter(({ skill }) => !bySkill.has(skill));
  if (bySkill.size + leaving.length === 0) {
    return (
      <div className="card">
        <EmptyState title={t('user.skills.none')} text={t('user.skills.none.text')} />
      </div>
    );
  }
  return (
    <div className={table.frame}>
      <Table
        aria-label={t('user.tab.skills')}
        className={table.table}
        verticalSpacing={7}
        horizontalSpacing={10}
      >
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('user.skills.name')}</Table.Th>
            <Table.Th>{t('users.state')}</Table.Th>
            <Table.Th>{t('user.skills.by')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {[...bySkill].map(([skill, given]) => {
            const isThere = lies.get(skill) === given[0]?.digest;
            return (
              <Table.Tr key={skill}>
                <Table.Td>
                  <Link to="/admin/skills/$name" params={{ name: skill }}>
                    {skill}
                  </Link>
                </Table.Td>
                <Table.Td>
                  <TonePill tone={isThere ? 'ok' : 'wait'}>
                    {t(isThere ? 'user.skills.there' : 'user.skills.coming')}
                  </TonePill>
                </Table.Td>
                <Table.Td>
                  {given.map((binding, at) => (
                    <div key={at}>
                      <BindingText binding={binding} />
                    </div>
                  ))}
                </Table.Td>
              </Table.Tr>
            );
          })}
          {leaving.map(({ skill }) => (
            <Table.Tr key={skill}>
              <Table.Td>{skill}</Table.Td>
              <Table.Td>
                <TonePill tone="off">{t('user.skills.leaving')}</TonePill>
              </Table.Td>
              <Table.Td>–</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
