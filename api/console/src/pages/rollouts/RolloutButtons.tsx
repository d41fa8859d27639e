import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import type { Rollout } from '../../api/queries/rollouts';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { changesImage } from './phases';

/** Changes whose effect is shown first. */
export type AskedChange = 'rollback' | 'cancel';

/** Phases in which users are on their way back, or are back. */
const BACK: ReadonlySet<Rollout['phase']> = new Set<Rollout['phase']>(['rolling_back', 'rolled_back']);
const QUICK = {
  pause: { label: 'rollout.pause', done: 'rollout.pause.done', failed: 'rollout.pause.failed' },
  resume: { label: 'rollout.resume', done: 'rollout.resume.done', failed: 'rollout.resume.failed' },
} as const;

interface Props {
  rollout: Rollout;
  onAsk: (change: AskedChange) => void;
}

/** Reports that a rollout can still be cancelled: those of a configuration or an adapter never can. */
export function isCancellable(rollout: Rollout): boolean {
  const { phase, finished_at: end } = rollout;
  return changesImage(rollout) && !end && phase !== 'cancelling' && !BACK.has(phase);
}

/** The two actions that fit the phase of a rollout. */
export function RolloutButtons({ rollout, onAsk }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const [working, setWorking] = useState(false);
  const { id, phase, finished_at: end } = rollout;
  const ofImage = changesImage(rollout);
  const quick = phase === 'paused' ? 'resume' : 'pause';
  const hasQuick = !end && (phase === 'paused' || phase === 'pulling' || phase === 'rolling');
  const act = async (): Promise<void> => {
    setWorking(true);
    try {
      await post(`/api/admin/images/rollouts/${quick}`, { id });
      toasts.done(t(QUICK[quick].done));
    } catch (thrown) {
      toasts.fail(t(QUICK[quick].failed), Failure.from(thrown));
    }
    await client.invalidateQueries({ queryKey: keys.object('rollout', id) });
    setWorking(false);
  };
  return (
    <>
      {hasQuick && (
        <Button
          variant={quick === 'resume' ? 'filled' : 'default'}
          disabled={working}
          onClick={() => void act()}
        >
          {working ? t('preview.working') : t(QUICK[quick].label)}
        </Button>
      )}
      {ofImage && !BACK.has(phase) && (
        <Button onClick={() => onAsk('rollback')}>{t('rollout.rollback')}…</Button>
      )}
    </>
  );
}
