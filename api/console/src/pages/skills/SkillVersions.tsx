import { Button, Table } from '@mantine/core';
import IconDownload from '@tabler/icons-react/icons/IconDownload';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { queryText } from '../../api/client';
import { Failure } from '../../api/failure';
import { skillVersionsQuery } from '../../api/queries/skills';
import { Bytes } from '../../components/Bytes';
import { DetailCard } from '../../components/DetailCard';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { TonePill } from '../../components/StatusPill';
import table from '../../components/table/table.module.css';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { ownUrl } from '../../prefix';

/** The versions of a skill, newest first, each with its download. */
export function SkillVersions({ name }: { name: string }): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(skillVersionsQuery(name));
  return (
    <DetailCard title={t('skill.versions')}>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingState rows={2} />}
      {data && (
        <Table
          aria-label={t('skill.versions')}
          className={table.table}
          verticalSpacing={6}
          horizontalSpacing={8}
        >
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('objects.version')}</Table.Th>
              <Table.Th data-drop={1}>{t('skill.source')}</Table.Th>
              <Table.Th data-drop={2} className="num">
                {t('objects.size')}
              </Table.Th>
              <Table.Th>{t('objects.created')}</Table.Th>
              <Table.Th>
                <span className="visually-hidden">{t('files.actions')}</span>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.map(({ number, version, active, source, commit, path, size, created_at: created }) => (
              <Table.Tr key={number}>
                <Table.Td>
                  {number} {version !== '' && <small>{visibleText(version)} </small>}
                  {active && <TonePill tone="ok">{t('skill.active')}</TonePill>}
                </Table.Td>
                <Table.Td data-drop={1}>
                  {source === 'upload' ? t('skill.upload') : visibleText(source)}
                  {path && <small> {visibleText(path)}</small>} {commit && <code>{commit.slice(0, 12)}</code>}
                </Table.Td>
                <Table.Td data-drop={2} className="num">
                  <Bytes value={size} />
                </Table.Td>
                <Table.Td>
                  <Time at={created} />
                </Table.Td>
                <Table.Td className="num">
                  <Button
                    component="a"
                    size="compact-sm"
                    href={ownUrl('/api/admin/skills/download') + queryText({ name, number })}
                    download
                    leftSection={<IconDownload size={14} aria-hidden />}
                    aria-label={t('table.action', {
                      action: t('skill.download'),
                      name: `${visibleText(name)} ${String(number)}`,
                    })}
                  >
                    {t('skill.download')}
                  </Button>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </DetailCard>
  );
}
