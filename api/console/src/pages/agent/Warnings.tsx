import type { ReactNode } from 'react';

import states from '../../components/states.module.css';
import { visibleText } from '../../modules/visible-text';

interface Props {
  title: string;
  warnings: readonly string[];
}

/** Warnings of the service in a box of their own; nothing without any. */
export function Warnings({ title, warnings }: Props): ReactNode {
  if (warnings.length === 0) return null;
  return (
    <section className={states.sentence} data-tone="warn">
      <strong>{title}</strong>
      {warnings.map((warning) => (
        <div key={warning} lang="en">
          {visibleText(warning)}
        </div>
      ))}
    </section>
  );
}
