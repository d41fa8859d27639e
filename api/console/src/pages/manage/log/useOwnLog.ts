import { useEffect, useState } from 'react';

import { Failure } from '../../../api/failure';
import { type LogLine, readLogLine } from '../../../components/log/log-lines';
import { useT } from '../../../i18n';
import { LogReader } from './follow-log';

/** Older lines are dropped beyond this number. */
const MOST = 20_000;
/** New lines are shown together, this often. */
const FLUSH = 100;
/** Waiting times before the log is read again after it ended, in milliseconds; the last one is repeated. */
const AGAIN = [1000, 2000, 5000, 15_000];

/** The log of the user's agent, as far as it was read. */
export interface OwnLog {
  lines: LogLine[];
  /** Nothing was read yet. */
  loading: boolean;
  /** Why nothing can be read at the moment; it is tried again by itself. */
  failure?: Failure;
}

/** Follows the log of the user's agent, over restarts of the agent and of the connection. */
export function useOwnLog(): OwnLog {
  const t = useT();
  const [log, setLog] = useState<OwnLog>({ lines: [], loading: true });
  useEffect(() => {
    let waiting: LogLine[] = [];
    let flush: ReturnType<typeof setTimeout> | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    let attempt = 0;
    let closed = false;
    const show = (): void => {
      const fresh = waiting;
      waiting = [];
      flush = undefined;
      setLog(({ lines }) => ({ lines: [...lines, ...fresh].slice(-MOST), loading: false }));
    };
    const add = (line: LogLine): void => {
      waiting.push(line);
      flush ??= setTimeout(show, FLUSH);
    };
    const reader = new LogReader((line) => {
      attempt = 0;
      add(readLogLine(line));
    });
    const read = async (): Promise<void> => {
      try {
        await reader.follow();
        if (closed) return;
        if (attempt === 0) add({ text: t('log.agent.ended'), mark: true });
        setLog((old) => ({ lines: old.lines, loading: false }));
      } catch (thrown) {
        if (closed) return;
        setLog((old) => ({ lines: old.lines, loading: false, failure: Failure.from(thrown) }));
      }
      again = setTimeout(() => void read(), AGAIN[Math.min(attempt, AGAIN.length - 1)]);
      attempt += 1;
    };
    void read();
    return () => {
      closed = true;
      clearTimeout(flush);
      clearTimeout(again);
      reader.stop();
    };
  }, [t]);
  return log;
}
