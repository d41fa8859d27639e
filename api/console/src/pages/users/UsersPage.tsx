import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { Failure } from '../../api/failure';
import { usersQuery } from '../../api/queries/users';
import { Copy } from '../../components/Copy';
import { EmptyState } from '../../components/EmptyState';
import { BulkBar } from '../../components/table/BulkBar';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { ServerTable } from '../../components/table/ServerTable';
import { withSingleValues } from '../../components/table/single-values';
import { useListState } from '../../components/table/useListState';
import { useSelection } from '../../components/table/useSelection';
import { useT } from '../../i18n';
import { type BulkAction, bulkFilter, bulkTarget } from './bulk';
import { BulkActions } from './BulkActions';
import { BulkDialog } from './BulkDialog';
import { listCommand } from './commands';
import { CreateUsers } from './CreateUsers';
import { TaskStrip } from './TaskStrip';
import { useLastTask } from './useLastTask';
import { USER_FILTERS, usersRequest } from './user-filters';
import styles from './users.module.css';
import { useUserColumns } from './useUserColumns';
import { useUserFilters } from './useUserFilters';

/** All users: who is not ready and why, and actions on several. */
export function UsersPage(): ReactNode {
  const t = useT();
  const control = withSingleValues(useListState(USER_FILTERS));
  const { state } = control;
  const { data, error, refetch, isPlaceholderData } = useQuery(usersQuery(usersRequest(listQuery(state))));
  const filters = useUserFilters(data?.not_ready);
  const columns = useUserColumns();
  const selection = useSelection(JSON.stringify(bulkFilter(state)));
  const [action, setAction] = useState<BulkAction>();
  const [creating, setCreating] = useState(false);
  const { task, setTask } = useLastTask();
  const total = data?.total ?? 0;
  const command = listCommand(state);
  const isLocal = data?.auth_mode === 'local';
  const create = (
    <Button variant="filled" onClick={() => setCreating(true)}>
      {t('create.button')}
    </Button>
  );
  return (
    <>
      <div className={styles.title}>
        <div className="grow">
          <h1>{t('section.users')}</h1>
          {data && <small>{t('users.count', { total, bad: data.not_ready ?? 0 })}</small>}
        </div>
        {isLocal && create}
      </div>
      <ListFilters control={control} filters={filters} />
      {task !== undefined && <TaskStrip id={task} onClose={() => setTask(undefined)} />}
      <ServerTable
        label={t('section.users')}
        columns={columns}
        rows={data?.users}
        page={data}
        isPrevious={isPlaceholderData}
        rowId={({ username }) => username}
        control={control}
        failure={error ? Failure.from(error) : undefined}
        onRetry={() => void refetch()}
        selection={selection}
        bulk={
          total > 0 && (
            <BulkBar selection={selection} total={total}>
              <BulkActions onChoose={setAction} />
            </BulkBar>
          )
        }
        empty={
          <EmptyState
            title={t('users.none')}
            text={t(isLocal ? 'users.none.text' : 'users.none.synchronised')}
            action={isLocal && create}
          />
        }
      />
      <div className={styles.command}>
        <code>{command}</code>
        <Copy text={command} />
      </div>
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
      {creating && <CreateUsers onClose={() => setCreating(false)} onTask={setTask} />}
    </>
  );
}
