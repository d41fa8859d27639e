import { Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';

import { useTranslation } from '../i18n';
import { clockTime, exactTime } from '../i18n/values';
import { useAge } from './useAge';
import { useNow } from './useNow';

interface Props {
  at: string | Date;
  /** "3 min ago", "09:12", or the exact time for audit and logs. */
  as?: 'age' | 'clock' | 'exact';
}

/** A time: how long ago, and exactly with zone and UTC on hover or focus. */
export function Time({ at, as = 'age' }: Props): ReactNode {
  const { language } = useTranslation();
  const date = typeof at === 'string' ? new Date(at) : at;
  const coarse = useNow(15);
  const age = useAge(date);
  const inZone = exactTime(date, language);
  const texts = { age, clock: clockTime(date, coarse, language), exact: inZone };
  const utc = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  return (
    <Tooltip label={`${inZone} · ${utc}`} openDelay={200}>
      {/* The exact time is reached by keyboard as well. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <time dateTime={date.toISOString()} tabIndex={0} className="nowrap">
        {texts[as]}
      </time>
    </Tooltip>
  );
}
