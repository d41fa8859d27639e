import { Autocomplete } from '@mantine/core';
import { type ReactNode, useId } from 'react';

import { useT } from '../../../i18n';
import type { ImageChoices } from '../../images/useImageChoices';
import styles from '../rollouts.module.css';
import type { RolloutPlan } from './plan';

/** Properties of a part of the form. */
export interface PartProps {
  plan: RolloutPlan;
  errorOf: (field: keyof RolloutPlan) => string | undefined;
  onChange: (part: Partial<RolloutPlan>) => void;
}

/** The image that users get: a tag of the engine or the registry, or any reference. */
export function ImageFields({
  plan,
  choices,
  errorOf,
  onChange,
}: PartProps & { choices: ImageChoices }): ReactNode {
  const t = useT();
  const id = useId();
  const { engine, registry, repository } = choices;
  const groups = [
    { group: t('images.tab.engine'), items: engine },
    { group: t('images.tab.registry'), items: registry },
  ].filter(({ items }) => items.length > 0);
  return (
    <section className={`card ${styles.part ?? ''}`} aria-labelledby={id}>
      <h2 id={id}>{t('rollout.part.image')}</h2>
      <Autocomplete
        label={t('users.image')}
        description={t('rollout.image.hint', { repository: repository ?? 'image.name' })}
        data={groups}
        value={plan.image}
        error={errorOf('image')}
        spellCheck={false}
        autoComplete="off"
        limit={60}
        maxDropdownHeight={280}
        withScrollArea={false}
        comboboxProps={{ transitionProps: { duration: 100 } }}
        onChange={(image) => onChange({ image })}
      />
    </section>
  );
}
