import { Loader } from '@mantine/core';
import type { ReactNode } from 'react';

import type { State } from '../../../chat/protocol';
import { useNow } from '../../../components/useNow';
import { useT, useTranslation } from '../../../i18n';
import { duration } from '../../../i18n/values';
import styles from './chat.module.css';

/** Says that the agent writes or works, and for how long already. */
export function TurnLine({ state }: { state: State | undefined }): ReactNode {
  if (!state || (!state.typing && state.turn === null)) return null;
  return <Working state={state} />;
}

function Working({ state: { typing, turn } }: { state: State }): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const now = useNow();
  const seconds = turn === null ? 0 : (now.getTime() - new Date(turn.since).getTime()) / 1000;
  const isLong = seconds >= 5;
  return (
    <div className={styles.turn}>
      <Loader size={22} aria-hidden />
      <small>
        {typing && !isLong
          ? t('chat.typing')
          : t('chat.working', { time: duration(Math.max(1, seconds), language) })}
      </small>
    </div>
  );
}
