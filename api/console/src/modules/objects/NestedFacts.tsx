import type { ReactNode } from 'react';

import { FactList } from '../../components/FactList';
import { useT } from '../../i18n';
import { useFactNames } from '../../i18n/facts';
import { FactValue } from './FactValue';
import styles from './objects.module.css';

/** Properties within a property, shown when asked for; of a list each entry. */
export function NestedFacts({ value }: { value: object }): ReactNode {
  const t = useT();
  const nameOf = useFactNames();
  const entries: unknown[] = Array.isArray(value) ? value : [value];
  return (
    <details>
      <summary>
        {Array.isArray(value) ? t('object.entries', { count: entries.length }) : t('object.show')}
      </summary>
      <div className={styles.nested}>
        {entries.map((entry, at) =>
          typeof entry === 'object' && entry !== null ? (
            <FactList
              key={at}
              facts={Object.entries(entry).map(([name, inner]) => [
                nameOf(name),
                <FactValue key={name} name={name} value={inner} />,
              ])}
            />
          ) : (
            <FactValue key={at} name="" value={entry} />
          ),
        )}
      </div>
    </details>
  );
}
