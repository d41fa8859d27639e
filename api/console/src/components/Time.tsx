import { Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';

import { useTranslation } from '../i18n';
import { clockTime, exactTime, relativeTime } from '../i18n/values';
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
  const isNear = Math.abs(coarse.getTime() - date.getTime()) < 90_000;
  const now = useNow(isNear ? 1 : 15);
  const inZone = exactTime(date, language);
  const age = as === 'age' ? relativeTime(date, now, language) : clockTime(date, coarse, language);
  const text = as === 'exact' ? inZone : age;
  const utc = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  return (
    <Tooltip label={`${inZone} · ${utc}`} openDelay={200}>
      {/* The exact time is reached by keyboard as well. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <time dateTime={date.toISOString()} tabIndex={0} className="nowrap">
        {text}
      </time>
    </Tooltip>
  );
}
