import { Checkbox, Table } from '@mantine/core';
import { type ReactNode, useState } from 'react';

import type { Schemas } from '../../../api/types';
import { Bytes } from '../../../components/Bytes';
import { HeaderCell } from '../../../components/table/HeaderCell';
import tables from '../../../components/table/table.module.css';
import type { ListControl } from '../../../components/table/useListState';
import type { Selection } from '../../../components/table/useSelection';
import { Time } from '../../../components/Time';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import { FileMenu } from './FileMenu';
import { FileName } from './FileName';
import styles from './files.module.css';
import { joinPath, parentOf } from './paths';
import { RenameField } from './RenameField';
import type { FileActions } from './useFileActions';

interface Props {
  entries: Schemas['FileEntry'][];
  control: ListControl;
  selection: Selection;
  actions: FileActions;
  onMove: (paths: string[]) => void;
  onDelete: (paths: string[]) => void;
}

/** Files and folders of a folder. */
export function FileTable({ entries, control, selection, actions, onMove, onDelete }: Props): ReactNode {
  const t = useT();
  const [renamed, setRenamed] = useState<string>();
  const paths = entries.map(({ rel_path: path }) => path);
  const chosen = paths.filter((path) => selection.has(path)).length;
  const columns = [
    { id: 'name', header: t('files.name') },
    { id: 'size', header: t('files.size'), numeric: true },
    { id: 'modified', header: t('files.changed'), drop: 1 as const },
  ];
  return (
    <Table
      aria-label={t('files.title')}
      className={`${tables.table ?? ''} ${styles.list ?? ''}`}
      verticalSpacing={4}
      horizontalSpacing={10}
    >
      <Table.Thead>
        <Table.Tr>
          <Table.Th className={tables.check}>
            <Checkbox
              size="xs"
              aria-label={t('table.select.page')}
              checked={chosen > 0 && chosen === paths.length}
              indeterminate={chosen > 0 && chosen < paths.length}
              onChange={(event) => selection.setMany(paths, event.currentTarget.checked)}
            />
          </Table.Th>
          {columns.map((column) => (
            <HeaderCell
              key={column.id}
              column={{ ...column, cell: () => null, sortable: true }}
              control={control}
            />
          ))}
          <Table.Th>
            <span className="visually-hidden">{t('files.actions')}</span>
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {entries.map((entry) => {
          const path = entry.rel_path;
          return (
            <Table.Tr key={path} data-chosen={selection.has(path) || undefined}>
              <Table.Td className={tables.check}>
                <Checkbox
                  size="xs"
                  aria-label={t('table.select.row', { name: visibleText(entry.name) })}
                  checked={selection.has(path)}
                  onChange={() => selection.toggle(path)}
                />
              </Table.Td>
              <Table.Td>
                {renamed === path ? (
                  <RenameField
                    name={entry.name}
                    onClose={() => setRenamed(undefined)}
                    onRename={(name) => actions.move(path, joinPath(parentOf(path), name))}
                  />
                ) : (
                  <FileName entry={entry} />
                )}
              </Table.Td>
              <Table.Td className="num dim">
                {entry.type === 'file' ? <Bytes value={entry.size} /> : ''}
              </Table.Td>
              <Table.Td className="dim" data-drop={1}>
                <Time at={entry.modified_at} />
              </Table.Td>
              <Table.Td className="num">
                <FileMenu
                  entry={entry}
                  path={path}
                  onRename={() => setRenamed(path)}
                  onMove={() => onMove([path])}
                  onDelete={() => onDelete([path])}
                />
              </Table.Td>
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}
