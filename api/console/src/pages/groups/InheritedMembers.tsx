import { Table } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import table from '../../components/table/table.module.css';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import styles from './groups.module.css';

/** Most rows that are shown. */
const MOST = 200;

interface Props {
  members: Schemas['InheritedMember'][];
  /** Part of the names that are shown. */
  words: string;
}

/** Members of the groups in a group, with the group that each is in. */
export function InheritedMembers({ members, words }: Props): ReactNode {
  const t = useT();
  const wanted = words.toLowerCase();
  const found = members.filter(({ username }) => username.toLowerCase().includes(wanted));
  if (members.length === 0) return null;
  return (
    <div className={styles.inherited}>
      <div className={table.frame}>
        <Table
          aria-label={t('group.inherited')}
          className={table.table}
          verticalSpacing={7}
          horizontalSpacing={10}
        >
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('group.inherited')}</Table.Th>
              <Table.Th>{t('group.via')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {found.slice(0, MOST).map(({ username, via }) => (
              <Table.Tr key={`${username} ${via}`}>
                <Table.Td>
                  <Link to="/admin/users/$name" params={{ name: username }}>
                    {username}
                  </Link>
                </Table.Td>
                <Table.Td>
                  <Link to="/admin/groups/$name" params={{ name: via }}>
                    {visibleText(via)}
                  </Link>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      <small>
        {t('group.inherited.count', { shown: Math.min(found.length, MOST), total: members.length })}
      </small>
    </div>
  );
}
