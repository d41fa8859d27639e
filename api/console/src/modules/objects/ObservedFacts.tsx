import type { ReactNode } from 'react';

import type { Described } from '../../api/queries/users';
import { DetailCard } from '../../components/DetailCard';
import { FactList } from '../../components/FactList';
import { useT } from '../../i18n';
import { useFactNames } from '../../i18n/facts';
import { observedOnly, type State } from './compare-facts';
import { FactValue } from './FactValue';
import { valueKind } from './value-kind';

/** Parts of what was observed that the page tells elsewhere. */
const TOLD = new Set(['ends', 'message']);

/** Observed state of an object beside the desired one. */
export function ObservedFacts({ object }: { object: Described }): ReactNode {
  const t = useT();
  const nameOf = useFactNames();
  const facts = observedOnly(object.desired as State | null, object.observed as State | null).filter(
    ([name, value]) => !TOLD.has(name) && valueKind(name, value) !== 'nothing',
  );
  if (facts.length === 0) return null;
  return (
    <DetailCard title={t('object.observed')}>
      <FactList
        facts={facts.map(([name, value]) => [
          nameOf(name),
          <FactValue key={name} name={name} value={value} />,
        ])}
      />
    </DetailCard>
  );
}
