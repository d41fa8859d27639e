import { Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { repositoriesQuery } from '../../api/queries/skills';
import styles from '../../components/detail.module.css';
import { ErrorState } from '../../components/ErrorState';
import { StatusPill } from '../../components/StatusPill';
import table from '../../components/table/table.module.css';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { ObjectLink } from '../../modules/objects/ObjectLink';
import { stateOf } from '../../modules/state';
import { visibleText } from '../../modules/visible-text';
import { Why } from '../objects/Why';

/** The repositories that skills come from, with the state of their last pull. */
export function RepositoryList(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(repositoriesQuery);
  const repositories = data?.repos ?? [];
  if (error && !data) return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (repositories.length === 0) return null;
  return (
    <section>
      <h2 className={styles.heading}>{t('repository.list')}</h2>
      <div className={table.frame}>
        <Table
          aria-label={t('repository.list')}
          className={table.table}
          verticalSpacing={7}
          horizontalSpacing={10}
        >
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('objects.name')}</Table.Th>
              <Table.Th>{t('objects.state')}</Table.Th>
              <Table.Th>{t('objects.why')}</Table.Th>
              <Table.Th data-drop={1}>{t('user.address')}</Table.Th>
              <Table.Th data-drop={2}>{t('repository.ref')}</Table.Th>
              <Table.Th data-drop={2} className="num">
                {t('section.skills')}
              </Table.Th>
              <Table.Th data-drop={3}>{t('repository.pulled')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {repositories.map(
              ({ name, conditions, url, ref, ref_type: type, skill_count: count, last_pull: at }) => (
                <Table.Tr key={name}>
                  <Table.Td>
                    <ObjectLink object={`skill-repository/${name}`}>{visibleText(name)}</ObjectLink>
                  </Table.Td>
                  <Table.Td>
                    <StatusPill state={stateOf(conditions)} />
                  </Table.Td>
                  <Table.Td>
                    <Why conditions={conditions} />
                  </Table.Td>
                  <Table.Td data-drop={1}>
                    <code>{visibleText(url)}</code>
                  </Table.Td>
                  <Table.Td data-drop={2}>
                    {t(type === 'tag' ? 'repository.tag' : 'repository.branch', { name: visibleText(ref) })}
                  </Table.Td>
                  <Table.Td data-drop={2} className="num">
                    {count}
                  </Table.Td>
                  <Table.Td data-drop={3}>{at ? <Time at={at} /> : t('users.never')}</Table.Td>
                </Table.Tr>
              ),
            )}
          </Table.Tbody>
        </Table>
      </div>
    </section>
  );
}
