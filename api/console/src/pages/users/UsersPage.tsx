import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';

import { CopyLine } from '../../components/CopyLine';
import { EmptyState } from '../../components/EmptyState';
import { useT } from '../../i18n';
import { useLastTask } from '../../modules/useLastTask';
import { UserTable } from '../../modules/users/UserTable';
import { useUserFilters } from '../../modules/users/useUserFilters';
import { useUserList } from '../../modules/users/useUserList';
import { listCommand } from './commands';
import { CreateUsers } from './CreateUsers';
import styles from './users.module.css';
import { useUserColumns } from './useUserColumns';

const FILTERS = ['not_ready', 'group', 'image', 'source', 'reason', 'disabled'] as const;

/** All users: who is not ready and why, and actions on several. */
export function UsersPage(): ReactNode {
  const t = useT();
  const list = useUserList();
  const { data, control } = list;
  const filters = useUserFilters(FILTERS, data?.not_ready);
  const columns = useUserColumns();
  const lastTask = useLastTask('users-task');
  const [creating, setCreating] = useState(false);
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
          {data && <small>{t('users.count', { total: data.total, bad: data.not_ready ?? 0 })}</small>}
        </div>
        {isLocal && create}
      </div>
      <UserTable
        list={list}
        label={t('section.users')}
        columns={columns}
        filters={filters}
        lastTask={lastTask}
        empty={
          <EmptyState
            title={t('users.none')}
            text={t(isLocal ? 'users.none.text' : 'users.none.synchronised')}
            action={isLocal && create}
          />
        }
      />
      <CopyLine text={listCommand(control.state)} />
      {creating && <CreateUsers onClose={() => setCreating(false)} onTask={lastTask.setTask} />}
    </>
  );
}
