import type { ReactNode } from 'react';

import { CopyLine } from '../../components/CopyLine';
import { EmptyState } from '../../components/EmptyState';
import { LinkButton } from '../../components/LinkButton';
import { useT } from '../../i18n';
import { plainWord } from '../../modules/plain-word';
import { useLastTask } from '../../modules/useLastTask';
import { UserTable } from '../../modules/users/UserTable';
import { useUserFilters } from '../../modules/users/useUserFilters';
import { useUserList } from '../../modules/users/useUserList';
import styles from './containers.module.css';
import { useContainerColumns } from './useContainerColumns';

const FILTERS = ['not_ready', 'status', 'image', 'group', 'reason', 'disabled'] as const;

/** All agents: state, reason, image, since when; actions on one and on several. */
export function ContainersPage(): ReactNode {
  const t = useT();
  const list = useUserList();
  const { data, control } = list;
  const { search, filters: chosen } = control.state;
  const filters = useUserFilters(FILTERS, data?.not_ready);
  const columns = useContainerColumns();
  const lastTask = useLastTask('users-task');
  const words = search === '' ? '' : ` --search ${plainWord(search)}`;
  const notReady = chosen.not_ready === undefined ? '' : ' --not-ready';
  const create = (
    <LinkButton to="/admin/users" variant="filled">
      {t('containers.none.users')}
    </LinkButton>
  );
  return (
    <>
      <div className={styles.title}>
        <h1>{t('section.containers')}</h1>
        {data && <small>{t('containers.count', { total: data.total, bad: data.not_ready ?? 0 })}</small>}
      </div>
      <UserTable
        list={list}
        label={t('section.containers')}
        columns={columns}
        filters={filters}
        lastTask={lastTask}
        empty={<EmptyState title={t('containers.none')} text={t('containers.none.text')} action={create} />}
      />
      <CopyLine text={`agentyard get containers${words}${notReady}`} />
    </>
  );
}
