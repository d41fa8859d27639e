import { type ReactNode, useState } from 'react';

import type { UserRow } from '../../api/queries/users';
import { TaskStrip } from '../../components/TaskStrip';
import { BulkBar } from '../../components/table/BulkBar';
import type { Filter } from '../../components/table/FilterChip';
import { ListFilters } from '../../components/table/ListFilters';
import { type Column, ServerTable } from '../../components/table/ServerTable';
import { useSelection } from '../../components/table/useSelection';
import { useT } from '../../i18n';
import { type BulkAction, bulkFilter, bulkTarget } from './bulk';
import { BulkActions } from './BulkActions';
import { BulkDialog } from './BulkDialog';
import type { LastTask } from '../useLastTask';
import type { UserList } from './useUserList';

interface Props {
  list: UserList;
  label: string;
  columns: Column<UserRow>[];
  filters: Filter[];
  lastTask: LastTask;
  /** Shown when there is no user at all. */
  empty: ReactNode;
}

/** Users with filters, and actions on several of them. */
export function UserTable({ list, label, columns, filters, lastTask, empty }: Props): ReactNode {
  const t = useT();
  const { control, data } = list;
  const { state } = control;
  const { task, setTask } = lastTask;
  const selection = useSelection(JSON.stringify(bulkFilter(state)));
  const [action, setAction] = useState<BulkAction>();
  const total = data?.total ?? 0;
  return (
    <>
      <ListFilters control={control} filters={filters} />
      {task !== undefined && <TaskStrip id={task} onClose={() => setTask(undefined)} />}
      <ServerTable
        label={label}
        columns={columns}
        rows={data?.users}
        page={data}
        isPrevious={list.isPrevious}
        rowId={({ username }) => username}
        control={control}
        failure={list.failure}
        onRetry={list.retry}
        selection={selection}
        bulk={
          total > 0 && (
            <BulkBar selection={selection} total={total}>
              <BulkActions onChoose={setAction} />
            </BulkBar>
          )
        }
        empty={empty}
      />
      {action !== undefined && (
        <BulkDialog
          action={action}
          target={bulkTarget(selection, state)}
          typedName={t('bulk.delete.word')}
          onClose={() => setAction(undefined)}
          onDone={(started) => {
            selection.clear();
            setTask(started);
          }}
        />
      )}
    </>
  );
}
