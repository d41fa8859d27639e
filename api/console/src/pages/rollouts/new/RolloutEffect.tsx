import { Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../../api/failure';
import { type RolloutPreview, type RolloutRequest, startRollout } from '../../../api/queries/rollout-preview';
import { ErrorState } from '../../../components/ErrorState';
import { LinkButton } from '../../../components/LinkButton';
import { LoadingState } from '../../../components/LoadingState';
import { useT } from '../../../i18n';
import { saidImage } from '../../../modules/image-name';
import styles from '../rollouts.module.css';
import { EffectText } from './EffectText';
import type { RolloutPlan } from './plan';

interface Props {
  plan: RolloutPlan;
  repository: string | undefined;
  /** Undefined while something is missing. */
  request: RolloutRequest | undefined;
  effect: RolloutPreview | undefined;
  /** The effect is that of what the form says now. */
  isCurrent: boolean;
  failure: Failure | undefined;
  /** The failure is shown at its field. */
  isPlaced: boolean;
  onRetry: () => void;
}

/** Effect of the rollout, and the button that starts it. */
export function RolloutEffect(props: Props): ReactNode {
  const { plan, repository, request, effect, isCurrent, failure, isPlaced, onRetry } = props;
  const t = useT();
  const client = useQueryClient();
  const navigate = useNavigate();
  const image = saidImage(plan.image, repository);
  const start = useMutation({
    mutationFn: startRollout,
    onSuccess: async ({ task_id: id }) => {
      void client.invalidateQueries({ queryKey: ['list', 'rollout'] });
      await navigate({ to: '/admin/rollouts/$id', params: { id: id ?? '' }, replace: true });
    },
  });
  const total = effect?.moves ?? effect?.total ?? 0;
  const canStart = request !== undefined && isCurrent && failure === undefined && total > 0;
  const refused = start.error ? Failure.from(start.error) : undefined;
  return (
    <section
      className={`card ${styles.effect ?? ''}`}
      aria-label={t('rollout.effect')}
      aria-busy={request !== undefined && !isCurrent}
      data-old={(request !== undefined && !isCurrent) || undefined}
    >
      <h2>{t('rollout.effect')}</h2>
      <div className={styles.told} aria-live="polite">
        {request === undefined && <p className="dim">{t('rollout.effect.none')}</p>}
        {request !== undefined && failure === undefined && effect === undefined && <LoadingState rows={4} />}
        {failure && isPlaced && <p>{t('rollout.effect.refused')}</p>}
        {failure && !isPlaced && (
          <>
            <ErrorState title={t('rollout.effect.failed')} failure={failure} onRetry={onRetry} />
            {failure.code === 'in_rollout' && <Link to="/admin/rollouts">{t('images.show.rollouts')}</Link>}
          </>
        )}
        {request !== undefined && failure === undefined && effect && (
          <EffectText effect={effect} image={image} plan={plan} />
        )}
      </div>
      {refused && <ErrorState title={t('preview.failed')} failure={refused} />}
      <div className={styles.start}>
        <LinkButton to="/admin/rollouts">{t('preview.cancel')}</LinkButton>
        <Button
          variant="filled"
          disabled={!canStart || start.isPending}
          onClick={() => request && start.mutate(request)}
        >
          {start.isPending
            ? t('preview.working')
            : total > 0 && request !== undefined
              ? t('rollout.verb', { count: total, image })
              : t('rollout.verb.none')}
        </Button>
      </div>
    </section>
  );
}
