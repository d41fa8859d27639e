import type { ReactNode } from 'react';

import styles from './detail.module.css';

/** A property with its value; one without a value is left out. */
export type Fact = readonly [label: string, value: ReactNode];

/** Properties of an object with their values. */
export function FactList({ facts }: { facts: readonly Fact[] }): ReactNode {
  return (
    <dl className={styles.facts}>
      {facts.map(([label, value]) =>
        value === undefined || value === null || value === false || value === '' ? null : (
          <div key={label} className={styles.fact}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
