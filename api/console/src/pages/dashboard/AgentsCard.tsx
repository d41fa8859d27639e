import { Progress } from '@mantine/core';
import type { ReactNode } from 'react';

import { TonePill } from '../../components/StatusPill';
import { useT } from '../../i18n';
import { type AgentCounts, PARTS } from './agent-counts';
import styles from './dashboard.module.css';

/** Count of agents that are ready: as a sentence, a bar, and in numbers. */
export function AgentsCard({ counts }: { counts: AgentCounts }): ReactNode {
  const t = useT();
  const { ready, wanted, failed, starting, stopped, unknown } = counts;
  const all = wanted + stopped;
  const parts = PARTS.filter(([part]) => counts[part] > 0);
  const rest = [
    wanted > 0 && t('dashboard.failing', { count: failed }),
    starting > 0 && t('dashboard.starting', { count: starting }),
    unknown > 0 && t('dashboard.unknown', { count: unknown }),
    stopped > 0 && t('dashboard.stopped', { count: stopped }),
  ].filter((text) => text !== false);
  return (
    <section className="card">
      <h1>{all === 0 ? t('dashboard.empty') : t('dashboard.ready', { ready, total: wanted })}</h1>
      <p className={styles.rest}>{all === 0 ? t('dashboard.empty.text') : rest.join(' ')}</p>
      {all > 0 && (
        <>
          <Progress.Root aria-hidden className={styles.bar}>
            {parts.map(([part, tone]) => (
              <Progress.Section key={part} value={(counts[part] / all) * 100} color={`var(--ay-${tone})`} />
            ))}
          </Progress.Root>
          <div className={styles.legend}>
            {parts.map(([part, tone]) => (
              <TonePill key={part} tone={tone}>
                {t(`dashboard.part.${part}`, { count: counts[part] })}
              </TonePill>
            ))}
          </div>
        </>
      )}
    </section>
  );
}
