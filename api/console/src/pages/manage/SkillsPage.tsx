import { Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { ownSkillsQuery } from '../../api/queries/own';
import type { Schemas } from '../../api/types';
import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { TonePill } from '../../components/StatusPill';
import tables from '../../components/table/table.module.css';
import { type T, useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { SubPage } from './SubPage';

function givenBy({ by, group: given, via }: Schemas['OwnSkillBinding'], t: T): string {
  const group = given ?? '';
  if (by === 'own') return t('skills.by.own');
  if (by === 'default') return t('skills.by.default');
  if (via == null || via === group) return t('skills.by.group', { group });
  return t('skills.by.group.via', { group, via });
}

/** Skills of the user's agent, with what gives each. */
export function SkillsPage(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(ownSkillsQuery);
  return (
    <SubPage title={t('skills.title')} text={t('skills.text')}>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {(data !== undefined || !error) && (
        <div className={tables.frame}>
          {data === undefined && <LoadingState rows={4} />}
          {data?.skills.length === 0 && <EmptyState title={t('skills.none')} text={t('skills.none.text')} />}
          {data && data.skills.length > 0 && (
            <Table aria-label={t('skills.title')} className={tables.table} horizontalSpacing={10}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t('skills.skill')}</Table.Th>
                  <Table.Th>{t('skills.state')}</Table.Th>
                  <Table.Th data-drop={1}>{t('skills.from')}</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {data.skills.map((skill) => (
                  <Table.Tr key={skill.name}>
                    <Table.Td>
                      <strong>{visibleText(skill.name)}</strong>{' '}
                      {skill.version !== '' && <small>{visibleText(skill.version)}</small>}
                      {skill.description !== '' && (
                        <div className="dim">{visibleText(skill.description)}</div>
                      )}
                    </Table.Td>
                    <Table.Td>
                      <TonePill tone={skill.deployed ? 'ok' : 'wait'}>
                        {t(skill.deployed ? 'skills.there' : 'skills.pending')}
                      </TonePill>
                      {!skill.deployed && skill.reason !== undefined && (
                        <div>
                          <small lang="en">{skill.reason}</small>
                        </div>
                      )}
                    </Table.Td>
                    <Table.Td data-drop={1} className="dim">
                      {skill.bindings.map((binding) => givenBy(binding, t)).join(t('list.comma'))}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )}
        </div>
      )}
    </SubPage>
  );
}
