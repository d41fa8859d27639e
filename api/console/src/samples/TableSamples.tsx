import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';

import { Failure } from '../api/failure';
import { EmptyState } from '../components/EmptyState';
import { StatusPill } from '../components/StatusPill';
import { BulkBar } from '../components/table/BulkBar';
import type { ListState } from '../components/table/list-state';
import { ListFilters } from '../components/table/ListFilters';
import { type Column, ServerTable } from '../components/table/ServerTable';
import { useSelection } from '../components/table/useSelection';
import type { ShownState } from '../modules/state';

interface Row {
  name: string;
  state: ShownState;
  why: string;
  image: string;
  files: string;
}

const bad: ShownState = { tone: 'bad', label: 'state.failed' };
const ROWS: Row[] = [
  { name: 'bob', state: bad, why: 'image cannot be pulled (401)', image: '1.2 → 1.3', files: '1.2 GB' },
  { name: 'carol', state: bad, why: 'image cannot be pulled (401)', image: '1.2 → 1.3', files: '340 MB' },
  {
    name: 'erin',
    state: { tone: 'wait', label: 'state.working' },
    why: 'waits for its health check',
    image: '1.3',
    files: '12 MB',
  },
  {
    name: 'frank',
    state: { tone: 'off', label: 'state.stopped' },
    why: 'by admin',
    image: '1.2',
    files: '4.0 GB',
  },
  { name: 'grace', state: { tone: 'ok', label: 'state.ready' }, why: '', image: '1.2', files: '702 MB' },
];

const COLUMNS: Column<Row>[] = [
  { id: 'name', header: 'Name', cell: (row) => <a href="#table">{row.name}</a>, sortable: true },
  { id: 'state', header: 'State', cell: (row) => <StatusPill state={row.state} /> },
  { id: 'why', header: 'Why', cell: (row) => row.why },
  { id: 'image', header: 'Image', cell: (row) => <code>{row.image}</code>, drop: 2 },
  { id: 'files', header: 'Files', cell: (row) => row.files, numeric: true, sortable: true, drop: 1 },
];

const FILTERS = [
  { name: 'not_ready', label: 'Not ready', options: [{ value: 'true', text: 'Not ready' }] },
  { name: 'group', label: 'Group', options: ['sales', 'crm'].map((value) => ({ value, text: value })) },
];

/** A list with rows, without rows, loading, and failed. */
export function TableSamples(): ReactNode {
  const [state, setState] = useState<ListState>({
    page: 1,
    search: '',
    sort: { column: 'name', descending: false },
    filters: { group: ['sales'] },
  });
  const control = { state, change: (parts: Partial<ListState>) => setState({ ...state, page: 1, ...parts }) };
  const selection = useSelection('');
  const page = { page: state.page, page_size: 50, total: 10_412, total_pages: 209 };
  const common = { columns: COLUMNS, rowId: (row: Row) => row.name, control, onRetry: () => undefined };
  const empty = (
    <EmptyState title="No users yet" text="A user has one agent." action={<Button>Create user</Button>} />
  );
  return (
    <>
      <div>
        <ListFilters control={control} filters={FILTERS} />
        <ServerTable
          {...common}
          label="Users"
          rows={ROWS}
          page={page}
          selection={selection}
          bulk={
            <BulkBar selection={selection} total={page.total}>
              <Button size="compact-md">Restart</Button>
              <Button size="compact-md" color="bad">
                Delete…
              </Button>
            </BulkBar>
          }
          empty={empty}
        />
      </div>
      <ServerTable {...common} label="Loading" rows={undefined} page={undefined} empty={empty} />
      <ServerTable {...common} label="Nothing matches" rows={[]} page={undefined} empty={empty} />
      <ServerTable
        {...common}
        label="Empty"
        rows={[]}
        page={undefined}
        control={{ ...control, state: { page: 1, search: '', filters: {} } }}
        empty={empty}
      />
      <ServerTable
        {...common}
        label="Failed"
        rows={undefined}
        page={undefined}
        failure={new Failure(503, 'busy', 'the service is busy; try again soon', 3)}
        empty={empty}
      />
    </>
  );
}
