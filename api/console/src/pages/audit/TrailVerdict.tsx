import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import states from '../../components/states.module.css';
import { TonePill } from '../../components/StatusPill';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';

/** Result of the verification of the trail. */
export function TrailVerdict({ verdict }: { verdict: Schemas['AuditVerdict'] }): ReactNode {
  const t = useT();
  const { valid, entries, first_seq: first, last_seq: last, problem } = verdict;
  if (valid) {
    return (
      <div role="status">
        <TonePill tone="ok">
          {t('audit.intact', { count: entries, first: String(first ?? 0), last: String(last ?? 0) })}
        </TonePill>
      </div>
    );
  }
  return (
    <section role="alert" className={states.sentence}>
      <strong>{t('audit.broken', { seq: String(problem?.seq ?? 0) })}</strong>
      {problem && <span lang="en">{visibleText(problem.message)}</span>}
      <span>{t('audit.broken.text', { count: entries })}</span>
    </section>
  );
}
