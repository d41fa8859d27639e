import { Table } from '@mantine/core';
import type { ReactNode } from 'react';

import tables from '../../components/table/table.module.css';
import { useT } from '../../i18n';
import type { SettingsOfGroup } from './filter-settings';
import { SettingRow } from './SettingRow';
import styles from './settings.module.css';

interface Props {
  groups: SettingsOfGroup[];
  /** Title of a group. */
  groupTitle: (group: string) => string;
  /** Key of the setting that the address names. */
  chosen?: string;
}

/** Settings in their groups. */
export function SettingsTable({ groups, groupTitle, chosen }: Props): ReactNode {
  const t = useT();
  return (
    <Table
      aria-label={t('section.settings')}
      className={`${tables.table ?? ''} ${styles.table ?? ''}`}
      verticalSpacing={7}
      horizontalSpacing={10}
    >
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t('settings.setting')}</Table.Th>
          <Table.Th className={styles.value}>{t('settings.value')}</Table.Th>
          <Table.Th data-drop={2} className={styles.commands}>
            {t('settings.command')}
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      {groups.map(({ group, settings }) => (
        <Table.Tbody key={group}>
          <Table.Tr>
            <Table.Th scope="rowgroup" colSpan={2} className={styles.group}>
              {groupTitle(group)}
            </Table.Th>
            <Table.Td data-drop={2} />
          </Table.Tr>
          {settings.map((setting) => (
            <SettingRow key={setting.key} setting={setting} isChosen={setting.key === chosen} />
          ))}
        </Table.Tbody>
      ))}
    </Table>
  );
}
