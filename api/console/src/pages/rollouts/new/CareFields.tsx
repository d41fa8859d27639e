import { Switch, TextInput, type TextInputProps } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useId } from 'react';

import { configQuery } from '../../../api/queries/config';
import { useT } from '../../../i18n';
import styles from '../rollouts.module.css';
import type { PartProps } from './ImageFields';

/** Time that a new container has when nothing is said. */
const TIMEOUT = '2m';

/** Fields for the care with which users are moved: how many at once, when one counts as moved, what a failure does. */
export function CareFields({ plan, errorOf, onChange }: PartProps): ReactNode {
  const t = useT();
  const id = useId();
  const { data: config } = useQuery(configQuery);
  const common: Partial<TextInputProps> = {
    autoComplete: 'off',
    spellCheck: false,
    inputWrapperOrder: ['label', 'input', 'description', 'error'],
  };
  return (
    <section className={`card ${styles.part ?? ''}`} aria-labelledby={id}>
      <h2 id={id}>{t('rollout.part.care')}</h2>
      <div className={styles.three}>
        <TextInput
          {...common}
          label={t('rollout.batch')}
          description={t('rollout.batch.hint')}
          placeholder="1"
          inputMode="numeric"
          value={plan.batch}
          error={errorOf('batch')}
          onChange={(event) => onChange({ batch: event.currentTarget.value })}
        />
        <TextInput
          {...common}
          label={t('rollout.ready')}
          description={t('rollout.ready.hint')}
          placeholder={config?.document.container?.min_ready}
          value={plan.minReady}
          error={errorOf('minReady')}
          onChange={(event) => onChange({ minReady: event.currentTarget.value })}
        />
        <TextInput
          {...common}
          label={t('rollout.timeout')}
          description={t('rollout.timeout.hint')}
          placeholder={TIMEOUT}
          value={plan.timeout}
          error={errorOf('timeout')}
          onChange={(event) => onChange({ timeout: event.currentTarget.value })}
        />
      </div>
      <Switch
        label={t('rollout.pause.on')}
        description={t(plan.pause ? 'rollout.pause.on.text' : 'rollout.pause.off.text')}
        checked={plan.pause}
        onChange={(event) => onChange({ pause: event.currentTarget.checked })}
      />
    </section>
  );
}
