import type { ReactNode } from 'react';

import { cutAtFinds, type LogLine } from './log-lines';
import styles from './log.module.css';

interface Props {
  line: LogLine;
  words: string;
  times: boolean;
  current: boolean;
}

const two = (number: number, width = 2): string => String(number).padStart(width, '0');

const clock = (time: Date): string =>
  `${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${two(time.getMilliseconds(), 3)}`;

/** A line of a log with its finds. Its time is left out when the line is copied. */
export function LogRow({ line, words, times, current }: Props): ReactNode {
  return (
    <div className={styles.line} data-mark={line.mark || undefined} data-current={current || undefined}>
      {times && line.time && <span className={styles.time}>{clock(line.time)}</span>}
      <span dir="ltr" className={styles.text}>
        {cutAtFinds(line.text, words).map((piece, at) =>
          at % 2 === 1 ? <mark key={at}>{piece}</mark> : piece,
        )}
        {'\n'}
      </span>
    </div>
  );
}
