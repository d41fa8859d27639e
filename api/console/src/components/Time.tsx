import { Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';

import { useTranslation } from '../i18n';
import { exactTime, relativeTime } from '../i18n/values';
import { useNow } from './useNow';

interface Props {
  at: string | Date;
  /** Shows the exact time instead of "3 min ago": for audit and logs. */
  exact?: boolean;
}

/** A time: how long ago, and exactly with zone and UTC on hover or focus. */
export function Time({ at, exact = false }: Props): ReactNode {
  const { language } = useTranslation();
  const date = typeof at === 'string' ? new Date(at) : at;
  const coarse = useNow(15);
  const isNear = Math.abs(coarse.getTime() - date.getTime()) < 90_000;
  const now = useNow(isNear ? 1 : 15);
  const inZone = exactTime(date, language);
  const utc = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  return (
    <Tooltip label={`${inZone} · ${utc}`} openDelay={200}>
      {/* The exact time is reached by keyboard as well. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <time dateTime={date.toISOString()} tabIndex={0} className="nowrap">
        {exact ? inZone : relativeTime(date, now, language)}
      </time>
    </Tooltip>
  );
}
