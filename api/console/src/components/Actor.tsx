import type { ReactNode } from 'react';

import { useT } from '../i18n';
import { actorText } from '../modules/actor';

/** Account or command line that did something; the name in the trail on hover. */
export function Actor({ name }: { name: string }): ReactNode {
  const text = actorText(name, useT());
  return <span title={text === name ? undefined : name}>{text}</span>;
}
