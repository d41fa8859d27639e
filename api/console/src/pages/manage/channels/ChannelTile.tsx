import type { ReactNode } from 'react';

import { TonePill } from '../../../components/StatusPill';
import { type MessageKey, useT } from '../../../i18n';
import type { Tone } from '../../../modules/state';
import styles from '../manage.module.css';

/** State of a channel. */
export type ChannelState = 'on' | 'off' | 'incomplete' | 'unset';

const PILLS: Record<ChannelState, [Tone, MessageKey]> = {
  on: ['ok', 'channel.on'],
  off: ['off', 'channel.off'],
  incomplete: ['warn', 'channel.incomplete'],
  unset: ['off', 'channel.unset'],
};

interface Props {
  label: string;
  state: ChannelState;
  /** Fields that are set, or missing ones. */
  text: string;
  link: ReactNode;
}

/** A channel on the overview. */
export function ChannelTile({ label, state, text, link }: Props): ReactNode {
  const t = useT();
  const [tone, key] = PILLS[state];
  return (
    <li className={styles.tile}>
      <div className={styles.tileHead}>
        <strong>{label}</strong> <TonePill tone={tone}>{t(key)}</TonePill>
      </div>
      {text !== '' && (
        <div>
          <small>{text}</small>
        </div>
      )}
      {link}
    </li>
  );
}
