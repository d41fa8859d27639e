import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import type { Rollout } from '../../api/queries/rollouts';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { changesOf } from './changes';

/** Changes whose effect is shown first. */
export type AskedChange = 'rollback' | 'cancel';

const QUICK = {
  pause: { label: 'rollout.pause', done: 'rollout.pause.done', failed: 'rollout.pause.failed' },
  resume: { label: 'rollout.resume', done: 'rollout.resume.done', failed: 'rollout.resume.failed' },
} as const;

interface Props {
  rollout: Rollout;
  onAsk: (change: AskedChange) => void;
}

/** The two actions that fit the phase of a rollout. */
export function RolloutButtons({ rollout, onAsk }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const [working, setWorking] = useState(false);
  const { id } = rollout;
  const { quick, canRollBack } = changesOf(rollout);
  const act = async (change: keyof typeof QUICK): Promise<void> => {
    setWorking(true);
    try {
      await post(`/api/admin/images/rollouts/${change}`, { id });
      toasts.done(t(QUICK[change].done));
    } catch (thrown) {
      toasts.fail(t(QUICK[change].failed), Failure.from(thrown));
    }
    await client.invalidateQueries({ queryKey: keys.object('rollout', id) });
    setWorking(false);
  };
  return (
    <>
      {quick && (
        <Button variant="default" disabled={working} onClick={() => void act(quick)}>
          {working ? t('preview.working') : t(QUICK[quick].label)}
        </Button>
      )}
      {canRollBack && <Button onClick={() => onAsk('rollback')}>{t('rollout.rollback')}…</Button>}
    </>
  );
}
