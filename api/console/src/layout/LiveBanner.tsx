import type { ReactNode } from 'react';

import { useT, useTranslation } from '../i18n';
import { clockTime } from '../i18n/values';
import { useLivePhase } from '../live/LiveProvider';
import styles from './layout.module.css';

/** Says since when the page shows what was. */
export function LiveBanner(): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const phase = useLivePhase();
  if (phase.name !== 'away') return null;
  const time = clockTime(phase.since, new Date(), language);
  return (
    <div role="status" className={styles.banner}>
      {t('live.banner', { time })}
    </div>
  );
}
