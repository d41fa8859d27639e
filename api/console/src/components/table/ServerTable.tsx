import { Button, Checkbox, Table } from '@mantine/core';
import { type ColumnDef, tableFeatures, useTable } from '@tanstack/react-table';
import { type ReactNode, useMemo } from 'react';

import type { Failure } from '../../api/failure';
import type { Page } from '../../api/types';
import { useT } from '../../i18n';
import { ErrorState } from '../ErrorState';
import { LoadingState } from '../LoadingState';
import { HeaderCell } from './HeaderCell';
import { writeListState } from './list-state';
import { NoRows } from './NoRows';
import { Pager } from './Pager';
import styles from './table.module.css';
import { useHeldRows } from './useHeldRows';
import type { ListControl } from './useListState';
import type { Selection } from './useSelection';

/** A column of a list. */
export interface Column<R> {
  id: string;
  header: string;
  cell: (row: R) => ReactNode;
  /** The server can sort by it, under the name `id`. */
  sortable?: boolean;
  numeric?: boolean;
  /** Its heading is for screen readers only, such as that of buttons. */
  hidesHeader?: boolean;
  /** Its words are never broken, such as codes. */
  short?: boolean;
  /** Columns with a greater number are dropped first on narrow pages; without one it stays. */
  drop?: 1 | 2 | 3;
}

interface Props<R> {
  /** Name of the list, for screen readers. */
  label: string;
  columns: Column<R>[];
  rows: R[] | undefined;
  page: Page | undefined;
  /** True while the previous rows are shown and new ones load. */
  isPrevious?: boolean;
  rowId: (row: R) => string;
  control: ListControl;
  failure?: Failure;
  onRetry: () => void;
  selection?: Selection;
  /** Bar above the rows, see BulkBar. */
  bulk?: ReactNode;
  /** Shown when the list is empty without any filter. */
  empty: ReactNode;
}

const features = tableFeatures({});

/** A list whose pages, sorting and filters are the server's. */
export function ServerTable<R extends object>(props: Props<R>): ReactNode {
  const { columns, control, failure, label, onRetry, page, rowId, selection } = props;
  const t = useT();
  const key = `${props.isPrevious === true ? 'previous ' : ''}${JSON.stringify(writeListState(control.state))}`;
  const held = useHeldRows(props.rows, rowId, key);
  const definitions = useMemo(
    () =>
      columns.map(({ id, header, cell }): ColumnDef<typeof features, R> => ({
        id,
        header,
        cell: ({ row }) => cell(row.original),
      })),
    [columns],
  );
  const rows = held.rows ?? [];
  const table = useTable({ features, columns: definitions, data: rows, getRowId: rowId });
  const byId = new Map(columns.map((column) => [column.id, column]));
  if (failure && held.rows === undefined) return <ErrorState failure={failure} onRetry={onRetry} />;
  const ids = rows.map(rowId);
  const chosen = ids.filter((id) => selection?.has(id)).length;
  return (
    <>
      {failure && <ErrorState failure={failure} onRetry={onRetry} />}
      <div className={styles.outer}>
        {held.changed > 0 && (
          <Button className={styles.changed} variant="light" size="compact-sm" onClick={held.update}>
            {t('live.changed', { count: held.changed })}
          </Button>
        )}
        <div className={styles.frame} aria-busy={held.rows === undefined || props.isPrevious}>
          {props.bulk}
          {held.rows === undefined && <LoadingState rows={8} />}
          {rows.length > 0 && (
            <Table aria-label={label} className={styles.table} verticalSpacing={7} horizontalSpacing={10}>
              <Table.Thead>
                {table.getHeaderGroups().map((group) => (
                  <Table.Tr key={group.id}>
                    {selection && (
                      <Table.Th className={styles.check}>
                        <Checkbox
                          size="xs"
                          aria-label={t('table.select.page')}
                          checked={chosen === ids.length}
                          indeterminate={chosen > 0 && chosen < ids.length}
                          onChange={(event) => selection.setMany(ids, event.currentTarget.checked)}
                        />
                      </Table.Th>
                    )}
                    {group.headers.map((header) => {
                      const column = byId.get(header.column.id);
                      return column && <HeaderCell key={header.id} column={column} control={control} />;
                    })}
                  </Table.Tr>
                ))}
              </Table.Thead>
              <Table.Tbody>
                {table.getRowModel().rows.map((row) => (
                  <Table.Tr key={row.id} data-chosen={selection?.has(row.id) === true || undefined}>
                    {selection && (
                      <Table.Td className={styles.check}>
                        <Checkbox
                          size="xs"
                          aria-label={t('table.select.row', { name: row.id })}
                          checked={selection.has(row.id)}
                          onChange={() => selection.toggle(row.id)}
                        />
                      </Table.Td>
                    )}
                    {row.getAllCells().map((cell) => {
                      const column = byId.get(cell.column.id);
                      return (
                        <Table.Td
                          key={cell.id}
                          data-drop={column?.drop}
                          className={column?.numeric ? 'num' : column?.short ? 'nowrap' : undefined}
                        >
                          {column?.cell(row.original)}
                        </Table.Td>
                      );
                    })}
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )}
          {held.rows !== undefined && rows.length === 0 && <NoRows control={control} empty={props.empty} />}
        </div>
      </div>
      {page && <Pager page={page} onPage={(next) => control.change({ page: next })} />}
    </>
  );
}
