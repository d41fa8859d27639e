import { Link } from '@tanstack/react-router';

import type { Schemas } from '../../api/types';
import { ReasonedButton } from '../../components/ReasonedButton';
import { StatusPill } from '../../components/StatusPill';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import type { T } from '../../i18n';
import { stateOfReconciler } from '../../modules/objects/reconciler-state';
import type { SwitchScope } from '../../modules/objects/switches';
import { visibleText } from '../../modules/visible-text';

type Summary = Schemas['ReconcilerSummary'];

/** Columns of reconcilers; `isAllPaused`: a single one cannot be resumed. */
export function reconcilerColumns(
  t: T,
  isAllPaused: boolean,
  onAsk: (scope: SwitchScope, pauses: boolean) => void,
): Column<Summary>[] {
  const list = (reconciler: string, count: number, filter: object): ReturnType<Column<Summary>['cell']> =>
    count === 0 ? (
      <span className="dim">0</span>
    ) : (
      <Link to="/admin/reconcile/objects" search={{ reconciler, ...filter } as never}>
        {count}
      </Link>
    );
  return [
    {
      id: 'name',
      header: t('objects.name'),
      cell: ({ name }) => (
        <Link to="/admin/reconcile/objects" search={{ reconciler: name } as never}>
          {name}
        </Link>
      ),
    },
    {
      id: 'state',
      header: t('objects.state'),
      cell: (summary) => {
        const { state, message } = stateOfReconciler(summary);
        return (
          <>
            <StatusPill state={state} />
            {message !== '' && (
              <div>
                <small lang="en">{visibleText(message)}</small>
              </div>
            )}
          </>
        );
      },
    },
    {
      id: 'objects',
      header: t('reconcile.objects'),
      numeric: true,
      drop: 1,
      cell: ({ name, objects }) => list(name, objects, {}),
    },
    { id: 'ready', header: t('state.ready'), numeric: true, drop: 2, cell: ({ ready }) => ready },
    {
      id: 'not_ready',
      header: t('state.failed'),
      numeric: true,
      cell: ({ name, not_ready: count }) => list(name, count, { not_ready: 'true' }),
    },
    { id: 'failing', header: t('reconcile.failing'), numeric: true, drop: 1, cell: ({ failing }) => failing },
    {
      id: 'paused',
      header: t('state.paused'),
      numeric: true,
      drop: 2,
      cell: ({ paused_objects: count }) => count,
    },
    {
      id: 'queue',
      header: t('reconcile.queue'),
      numeric: true,
      drop: 2,
      cell: ({ queue_depth: waiting, in_flight: now }) => waiting + now,
    },
    {
      id: 'last',
      header: t('reconcile.last'),
      drop: 3,
      cell: ({ last_resync_at: at }) => (at ? <Time at={at} /> : <span className="dim">–</span>),
    },
    {
      id: 'switch',
      header: t('files.actions'),
      hidesHeader: true,
      numeric: true,
      cell: ({ name, paused, objects }) => (
        <ReasonedButton
          size="compact-sm"
          reason={isAllPaused ? t('reconcile.one.of.all') : undefined}
          aria-label={t('table.action', { action: t(paused ? 'object.resume' : 'object.pause'), name })}
          onClick={() => onAsk({ of: 'reconciler', name, count: objects }, !paused)}
        >
          {t(paused ? 'object.resume' : 'object.pause')}…
        </ReasonedButton>
      ),
    },
  ];
}
