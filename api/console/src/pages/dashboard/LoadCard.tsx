import type { ReactNode } from 'react';

import type { Summary } from '../../api/queries/summary';
import { useT, useTranslation } from '../../i18n';
import { byteSize } from '../../i18n/values';
import styles from './dashboard.module.css';
import { HEIGHT, plot, WIDTH } from './load-plot';

/** Processors and memory of all agents over the last hour; nothing while nothing runs. */
export function LoadCard({ load }: { load: Summary['load'] }): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const last = load.at(-1);
  if (last === undefined || load.length < 2 || load.every((point) => point.running === 0)) return null;
  const cores = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });
  return (
    <section className="card" aria-labelledby="load">
      <h2 id="load">{t('load.title')}</h2>
      <div className={styles.plots}>
        <Curve
          title={t('load.cores')}
          points={load.map((point) => ({ at: Date.parse(point.at), value: point.cores }))}
          show={(value) => t('load.cores.value', { value: cores.format(value) })}
        />
        <Curve
          title={t('load.memory')}
          points={load.map((point) => ({ at: Date.parse(point.at), value: point.memory_bytes }))}
          show={(value) => byteSize(value, language)}
        />
      </div>
      {last.sampled < last.running && (
        <small className={styles.rest}>
          {t('load.sampled', { sampled: last.sampled, running: last.running })}
        </small>
      )}
    </section>
  );
}

interface CurveProps {
  title: string;
  points: { at: number; value: number }[];
  show: (value: number) => string;
}

/** One curve; the text beside it says the same in words. */
function Curve({ title, points, show }: CurveProps): ReactNode {
  const t = useT();
  const { line, area, peak } = plot(points);
  return (
    <div className={styles.plot}>
      <div>
        <strong>{title}</strong>{' '}
        <span className={styles.rest}>
          {t('load.now', { now: show(points.at(-1)?.value ?? 0), peak: show(peak) })}
        </span>
      </div>
      <svg viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`} preserveAspectRatio="none" aria-hidden>
        <path d={area} className={styles.area} />
        <path d={line} className={styles.curve} />
      </svg>
    </div>
  );
}
