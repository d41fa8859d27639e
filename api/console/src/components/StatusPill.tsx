import IconAlertTriangle from '@tabler/icons-react/icons/IconAlertTriangle';
import IconCheck from '@tabler/icons-react/icons/IconCheck';
import IconDots from '@tabler/icons-react/icons/IconDots';
import IconPlayerStop from '@tabler/icons-react/icons/IconPlayerStop';
import IconQuestionMark from '@tabler/icons-react/icons/IconQuestionMark';
import IconX from '@tabler/icons-react/icons/IconX';
import type { ReactNode } from 'react';

import { useT } from '../i18n';
import type { ShownState, Tone } from '../modules/state';
import styles from './status.module.css';

const ICONS: Record<Tone, typeof IconCheck> = {
  ok: IconCheck,
  wait: IconDots,
  bad: IconX,
  warn: IconAlertTriangle,
  off: IconPlayerStop,
  unknown: IconQuestionMark,
};

/** A state by icon, colour and word. */
export function StatusPill({ state }: { state: ShownState }): ReactNode {
  const t = useT();
  return <TonePill tone={state.tone}>{t(state.label, state.values)}</TonePill>;
}

/** A pill with other words, in the look of a state. */
export function TonePill({ tone, children }: { tone: Tone; children: ReactNode }): ReactNode {
  const Icon = ICONS[tone];
  return (
    <span className={styles.pill} data-tone={tone}>
      <Icon size={13} stroke={2.5} aria-hidden />
      {children}
    </span>
  );
}
