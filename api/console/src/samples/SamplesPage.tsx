import { type ReactNode, useState } from 'react';

import { Switches } from '../signin/Switches';
import { ActionSamples } from './ActionSamples';
import { ChatSamples } from './ChatSamples';
import { FormSamples } from './FormSamples';
import { LogSamples } from './LogSamples';
import { ObjectSamples } from './ObjectSamples';
import { SigninSamples } from './SigninSamples';
import { StateSamples } from './StateSamples';
import { TableSamples } from './TableSamples';

const SAMPLES: Record<string, () => ReactNode> = {
  states: StateSamples,
  object: ObjectSamples,
  table: TableSamples,
  actions: ActionSamples,
  log: LogSamples,
  form: FormSamples,
  chat: ChatSamples,
  signin: SigninSamples,
};

/** All components with their states; `#table` shows one group alone. */
export function SamplesPage(): ReactNode {
  const [only] = useState(() => location.hash.slice(1));
  const shown = Object.entries(SAMPLES).filter(([name]) => only === '' || name === only);
  return (
    <main style={{ maxWidth: 1240, margin: '0 auto', padding: 20 }} className="stack">
      <Switches />
      {shown.map(([name, Samples]) => (
        <section key={name} id={name} className="stack" aria-label={name}>
          <h2 className="mono">{name}</h2>
          <Samples />
        </section>
      ))}
    </main>
  );
}
