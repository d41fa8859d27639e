import type { ReactNode } from 'react';

import type { KeptUser, RolloutPreview } from '../../../api/queries/rollout-preview';
import { Remedy } from '../../../components/Remedy';
import states from '../../../components/states.module.css';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from '../rollouts.module.css';
import type { RolloutPlan } from './plan';

/** Effect of a rollout in sentences: who moves, who keeps what they have, what restarts. */
export function EffectText({
  effect,
  image,
  plan,
}: {
  effect: RolloutPreview;
  image: string;
  plan: RolloutPlan;
}): ReactNode {
  const t = useT();
  const { total, restarts, warnings } = effect;
  const users = effect.users ?? [];
  const skipped = effect.skipped ?? [];
  const moves = effect.moves ?? total;
  const batch = /^\d+$/.test(plan.batch.trim()) ? Number(plan.batch) : 1;
  return (
    <>
      <p>
        <strong>{t('rollout.effect.moves', { count: moves, image })}</strong>{' '}
        {moves > 1 && t('rollout.effect.batch', { count: batch })}
      </p>
      {users.length > 0 && (
        <div className={styles.names}>
          {users.join(', ')}
          {moves > users.length && ` ${t('bulk.more', { count: moves - users.length })}`}
        </div>
      )}
      {typeof restarts === 'number' && <p>{t('rollout.effect.restarts', { count: restarts })}</p>}
      {skipped.length > 0 && (
        <div>
          <strong>{t('rollout.effect.keep', { count: effect.skipped_total ?? skipped.length })}</strong>
          <ul className={styles.list}>
            {groupKept(skipped).map(({ reason, names }) => (
              <li key={reason}>
                {names.join(', ')}: <span lang="en">{visibleText(reason)}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      {warnings.map((warning) => (
        <div key={warning} lang="en" className={states.sentence} data-tone="warn">
          <Remedy text={visibleText(warning)} />
        </div>
      ))}
    </>
  );
}

/** Groups those who keep their image by the reason, in the server's order. */
function groupKept(kept: KeptUser[]): { reason: string; names: string[] }[] {
  const byReason = new Map<string, string[]>();
  for (const { username, reason } of kept) byReason.set(reason, [...(byReason.get(reason) ?? []), username]);
  return [...byReason].map(([reason, names]) => ({ reason, names }));
}
