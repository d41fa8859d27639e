import type { ReactNode } from 'react';

import type { Problem } from '../../api/queries/summary';
import detail from '../../components/detail.module.css';
import { Remedy } from '../../components/Remedy';
import { TonePill } from '../../components/StatusPill';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import styles from './dashboard.module.css';
import { ProblemRow } from './ProblemRow';

interface Props {
  problems: Problem[];
  /** Warnings of the service while it works. */
  warnings: string[];
}

/** Everything that needs attention, by reason. */
export function ProblemsCard({ problems, warnings }: Props): ReactNode {
  const t = useT();
  return (
    <section className={`card ${detail.card ?? ''}`} aria-labelledby="problems">
      <h2 id="problems">{t('dashboard.problems')}</h2>
      {problems.length === 0 && warnings.length === 0 && (
        <p className="dim">{t('dashboard.problems.none')}</p>
      )}
      <ul className={styles.problems}>
        {problems.map((problem) => (
          <ProblemRow key={`${problem.kind}/${problem.reason}`} problem={problem} />
        ))}
        {warnings.map((warning) => (
          <li key={warning} className={styles.problem}>
            <div className={styles.what}>
              <TonePill tone="warn">{t('dashboard.warning')}</TonePill>
              <div lang="en" className={styles.message}>
                <Remedy text={visibleText(warning)} />
              </div>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
