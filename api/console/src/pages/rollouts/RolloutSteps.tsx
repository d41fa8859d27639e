import type { ReactNode } from 'react';

import type { Rollout } from '../../api/queries/rollouts';
import { type Step, Steps } from '../../components/Steps';
import { useT } from '../../i18n';
import { changesImage, goalOf } from './phases';

type State = Step['state'];

/** States of the steps of a rollout: the image, the users, the way back. */
interface States {
  image: State;
  users: State;
  back?: State;
}

/** Derives how far each step is. */
function stepStates(rollout: Rollout): States {
  const { phase, image_id: resolved, progress } = rollout;
  const hasImage = typeof resolved === 'string' || progress.done + progress.failed > 0;
  const failed = progress.failed > 0 ? 'failed' : 'done';
  const image: State = hasImage ? 'done' : 'next';
  switch (phase) {
    case 'pulling':
      return { image: 'now', users: progress.done > 0 ? 'now' : 'next' };
    case 'paused':
      return { image: hasImage ? 'done' : 'failed', users: progress.failed > 0 ? 'failed' : 'next' };
    case 'succeeded':
      return { image: 'done', users: 'done' };
    case 'failed':
      return { image: hasImage ? 'done' : 'failed', users: failed };
    case 'rolling_back':
      return { image, users: failed, back: 'now' };
    case 'rolled_back':
      return { image, users: failed, back: 'done' };
    case 'cancelling':
    case 'cancelled':
      return { image, users: failed };
    default:
      return { image: 'done', users: 'now' };
  }
}

/** The steps of a rollout in their order. */
export function RolloutSteps({ rollout }: { rollout: Rollout }): ReactNode {
  const t = useT();
  const { image, users, back } = stepStates(rollout);
  const ofImage = changesImage(rollout);
  const most = rollout.max_unavailable;
  const steps: Step[] = [];
  if (ofImage) steps.push({ text: t('rollout.step.image', { image: goalOf(rollout) }), state: image });
  steps.push({ text: t(ofImage ? 'rollout.step.users' : 'rollout.step.agents', { most }), state: users });
  if (back !== undefined) steps.push({ text: t('rollout.step.back'), state: back });
  return <Steps steps={steps} />;
}
