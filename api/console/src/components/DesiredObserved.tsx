import { Table } from '@mantine/core';
import type { ReactNode } from 'react';

import { useT } from '../i18n';
import styles from './object.module.css';

/** A property of an object as it shall be and as it is. */
export interface Compared {
  label: string;
  desired: ReactNode;
  /** Nothing when it is not known. */
  observed: ReactNode | undefined;
  differs: boolean;
}

interface Props {
  /** Name of the table, for screen readers. */
  label: string;
  rows: Compared[];
}

/** Desired beside observed; rows that differ are marked. */
export function DesiredObserved({ label, rows }: Props): ReactNode {
  const t = useT();
  return (
    <Table aria-label={label} className={styles.compare} verticalSpacing={7} horizontalSpacing={10}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>
            <span className="visually-hidden">{t('compare.property')}</span>
          </Table.Th>
          <Table.Th>{t('compare.desired')}</Table.Th>
          <Table.Th>{t('compare.observed')}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(({ label: property, desired, observed, differs }) => (
          <Table.Tr key={property} data-differs={differs || undefined}>
            <Table.Th scope="row">
              {property}
              {differs && <span className="visually-hidden"> ({t('compare.differs')})</span>}
            </Table.Th>
            <Table.Td>{desired}</Table.Td>
            <Table.Td>{observed ?? <span className="dim">{t('compare.unknown')}</span>}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
