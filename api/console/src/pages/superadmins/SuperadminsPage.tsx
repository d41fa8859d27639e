import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo, useState } from 'react';

import { Failure } from '../../api/failure';
import { superadminsQuery } from '../../api/queries/superadmins';
import { useSession } from '../../app/useSession';
import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { ApiTokens } from './ApiTokens';
import { CreateSuperadmin } from './CreateSuperadmin';
import { type AskedOfSuperadmin, SuperadminDialogs } from './SuperadminDialogs';
import { superadminColumns } from './superadmin-columns';

const FILTERS: readonly string[] = [];
const COMMANDS = [
  'agentyard get superadmins',
  'agentyard reset-password NAME --random',
  'agentyard api-token create NAME --role read',
];

/** The administrators: who may do everything here. */
export function SuperadminsPage(): ReactNode {
  const t = useT();
  const { username: own } = useSession();
  const control = useListState(FILTERS);
  const { data, error, refetch, isPlaceholderData } = useQuery(superadminsQuery(listQuery(control.state)));
  // Own changes are shown at once; those by others when the reader wants it.
  const [changes, setChanges] = useState(0);
  const noteChange = (): void => setChanges((count) => count + 1);
  const [creating, setCreating] = useState(false);
  const [asked, setAsked] = useState<AskedOfSuperadmin>();
  const columns = useMemo(() => superadminColumns(t, own, setAsked), [t, own]);
  return (
    <div className="stack">
      <div className="row">
        <div className="grow">
          <h1>{t('section.superadmins')}</h1>
          {data && <small>{t('superadmins.count', { count: data.total })}</small>}
        </div>
        <Button variant="filled" onClick={() => setCreating(true)}>
          {t('superadmins.create')}
        </Button>
      </div>
      <p className="dim">{t('superadmins.text')}</p>
      <div>
        <ListFilters control={control} />
        <ServerTable
          key={changes}
          label={t('section.superadmins')}
          columns={columns}
          rows={data?.items}
          page={data}
          isPrevious={isPlaceholderData}
          rowId={({ username }) => username}
          control={control}
          failure={error ? Failure.from(error) : undefined}
          onRetry={() => void refetch()}
          empty={<EmptyState title={t('objects.none')} />}
        />
      </div>
      <ApiTokens />
      <CommandLine commands={COMMANDS} />
      {creating && <CreateSuperadmin onClose={() => setCreating(false)} onChanged={noteChange} />}
      <SuperadminDialogs asked={asked} onClose={() => setAsked(undefined)} onDeleted={noteChange} />
    </div>
  );
}
