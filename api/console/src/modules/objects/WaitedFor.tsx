import type { ReactNode } from 'react';

import { Rich } from '../../i18n';
import { ObjectLink } from './ObjectLink';

/** Names the object that something waits for, as a link. */
export function WaitedFor({ object }: { object: string }): ReactNode {
  return (
    <div>
      <Rich k="user.waits.for" values={{ object: <ObjectLink key="object" object={object} /> }} />
    </div>
  );
}
