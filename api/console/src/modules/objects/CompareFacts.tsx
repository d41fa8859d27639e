import type { ReactNode } from 'react';

import type { Described } from '../../api/queries/users';
import { type Compared, DesiredObserved } from '../../components/DesiredObserved';
import { useT } from '../../i18n';
import { useFactNames } from '../../i18n/facts';
import { compareFacts, type ComparedFact, type State } from './compare-facts';
import { FactValue } from './FactValue';
import styles from './objects.module.css';
import { valueKind } from './value-kind';

/** Returns true for a fact that says anything. */
function isTold({ name, desired, observed }: ComparedFact): boolean {
  return valueKind(name, desired) !== 'nothing' || valueKind(name, observed) !== 'nothing';
}

/** Desired beside observed, for an object of any kind. */
export function CompareFacts({ object }: { object: Described }): ReactNode {
  const t = useT();
  const nameOf = useFactNames();
  const { generation, observed_generation: seen, desired, observed } = object;
  const facts = compareFacts(desired as State | null, observed as State | null);
  const rows = facts.filter(isTold).map(({ name, desired: wanted, observed: found, differs }): Compared => ({
    label: nameOf(name),
    desired: <FactValue name={name} value={wanted} />,
    observed: found === undefined ? <span className="dim">–</span> : <FactValue name={name} value={found} />,
    differs,
  }));
  const generations: Compared = {
    label: nameOf('generation'),
    desired: generation,
    observed: seen,
    differs: generation !== seen,
  };
  return (
    <section className={`card ${styles.compare ?? ''}`} aria-label={t('user.compare')}>
      <DesiredObserved label={t('user.compare')} rows={[...rows, generations]} />
    </section>
  );
}
