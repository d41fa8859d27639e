import { Table } from '@mantine/core';
import IconArrowDown from '@tabler/icons-react/icons/IconArrowDown';
import IconArrowUp from '@tabler/icons-react/icons/IconArrowUp';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import type { Column } from './ServerTable';
import styles from './table.module.css';
import type { ListControl } from './useListState';

interface Props<R> {
  column: Column<R>;
  control: ListControl;
}

/** Heading of a column; sorts the whole list where the server can. */
export function HeaderCell<R>({ column, control }: Props<R>): ReactNode {
  const t = useT();
  const { sort } = control.state;
  const sorted = sort?.column === column.id;
  const common = { 'data-drop': column.drop, className: column.numeric === true ? 'num' : undefined };
  if (column.hidesHeader === true) {
    return (
      <Table.Th {...common}>
        <span className="visually-hidden">{column.header}</span>
      </Table.Th>
    );
  }
  if (column.sortable !== true) return <Table.Th {...common}>{column.header}</Table.Th>;
  const descending = sorted && sort.descending;
  const Icon = descending ? IconArrowDown : IconArrowUp;
  const direction = descending ? 'descending' : 'ascending';
  return (
    <Table.Th {...common} aria-sort={sorted ? direction : 'none'}>
      <button
        type="button"
        className={styles.sort}
        title={t('table.sort', { column: column.header })}
        onClick={() => control.change({ sort: { column: column.id, descending: sorted && !descending } })}
      >
        {column.header}
        <Icon size={14} aria-hidden className={sorted ? undefined : styles.unsorted} />
      </button>
    </Table.Th>
  );
}
