import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import type { Described } from '../../api/queries/users';
import { ObjectHeader } from '../../components/ObjectHeader';
import { ReasonedButton } from '../../components/ReasonedButton';
import { useT } from '../../i18n';
import { reconcileQuery } from '../../layout/useAttention';
import { SwitchDialog } from '../../modules/objects/SwitchDialog';
import { useRetry } from '../../modules/objects/useRetry';
import { stateOf } from '../../modules/state';
import { visibleText } from '../../modules/visible-text';

/** Head of an object's page: where it is, its state, retry, pause and resume. */
export function ObjectHead({ object }: { object: Described }): ReactNode {
  const t = useT();
  const { kind, name, paused, conditions, deleted_at: deleted } = object;
  const { retry, isPending } = useRetry(kind, name);
  const { data: overview } = useQuery(reconcileQuery);
  const [asked, setAsked] = useState(false);
  const isKindPaused = overview?.reconcilers.find((one) => one.name === kind)?.paused === true;
  const state = deleted ? ({ tone: 'wait', label: 'state.deleting' } as const) : stateOf(conditions);
  const held = paused
    ? t('object.retry.paused')
    : isKindPaused
      ? t('object.retry.kind', { kind })
      : undefined;
  return (
    <>
      <ObjectHeader
        crumbs={
          <>
            <Link to="/admin/reconcile">{t('section.reconcile')}</Link>
            {' / '}
            <Link to="/admin/reconcile/objects" search={{ reconciler: kind } as never}>
              {kind}
            </Link>
            {` / ${visibleText(name)}`}
          </>
        }
        name={visibleText(`${kind}/${name}`)}
        state={state}
        actions={
          <>
            <ReasonedButton
              reason={held}
              variant={state.tone === 'ok' || held !== undefined ? 'default' : 'filled'}
              disabled={isPending}
              onClick={retry}
            >
              {isPending ? t('preview.working') : t('user.retry')}
            </ReasonedButton>
            <Button variant={paused ? 'filled' : 'default'} onClick={() => setAsked(true)}>
              {t(paused ? 'object.resume' : 'object.pause')}…
            </Button>
          </>
        }
      />
      {asked && (
        <SwitchDialog scope={{ of: 'object', kind, name }} pauses={!paused} onClose={() => setAsked(false)} />
      )}
    </>
  );
}
