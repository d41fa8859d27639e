import type { ReactNode } from 'react';

import type { Described } from '../../../api/queries/users';
import type { Schemas } from '../../../api/types';
import { type Compared, DesiredObserved } from '../../../components/DesiredObserved';
import { useT, useTranslation } from '../../../i18n';
import { byteSize } from '../../../i18n/values';
import styles from '../users.module.css';
import type { UserDetail } from '../useUserDetail';
import { countSkills } from './skill-count';

interface Props {
  detail: UserDetail;
  config?: Described;
  skills?: Described;
}

/** Desired beside observed: image, running, limits, configuration, skills. */
export function CompareCard({ detail, config, skills }: Props): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const { desired, observed } = detail;
  if (desired === undefined) return null;
  const now = (observed ?? {}) as Partial<Schemas['ContainerNow']>;
  const yesNo = (value: boolean): string => t(value ? 'user.yes' : 'user.no');
  const memory = (mb: number): string =>
    mb === 0 ? t('user.unlimited') : byteSize(mb * 1_048_576, language);
  const cores = (cpu: number): string => (cpu === 0 ? t('user.unlimited') : t('user.cores', { count: cpu }));
  const rows: Compared[] = [];
  const add = <V,>(label: string, want: V, is: V | null | undefined, show: (value: V) => ReactNode): void => {
    const known = is !== null && is !== undefined;
    rows.push({
      label,
      desired: show(want),
      observed: known ? show(is) : undefined,
      differs: known && is !== want,
    });
  };
  const image = (reference: string): ReactNode => (
    <code title={reference}>{reference.slice(reference.lastIndexOf('/') + 1)}</code>
  );
  add(t('users.image'), desired.image, observed?.image_ref, image);
  add(t('user.running'), desired.running, now.running, yesNo);
  if (now.running === true) {
    add(t('user.memory'), desired.memory_limit_mb, now.memory_limit_mb, memory);
    add(t('user.cpu'), desired.cpu_limit, now.cpu_limit, cores);
  } else {
    rows.push({
      label: t('user.memory'),
      desired: memory(desired.memory_limit_mb),
      observed: '–',
      differs: false,
    });
    rows.push({ label: t('user.cpu'), desired: cores(desired.cpu_limit), observed: '–', differs: false });
  }
  if (desired.debug || now.debug === true) add(t('user.debugging'), desired.debug, now.debug, yesNo);
  const generation = (value: number): string => t('user.generation', { value: String(value) });
  if (config) add(t('user.configuration'), config.generation, config.observed_generation, generation);
  const counts = skills && countSkills(skills);
  if (counts) {
    rows.push({
      label: t('user.tab.skills'),
      desired: counts.desired,
      observed: counts.observed,
      differs: counts.desired !== counts.observed,
    });
  }
  return (
    <section className={`card ${styles.compare ?? ''}`} aria-label={t('user.compare')}>
      <DesiredObserved label={t('user.compare')} rows={rows} />
    </section>
  );
}
