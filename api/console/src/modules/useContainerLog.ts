import { useCallback, useEffect, useRef, useState } from 'react';

import { Failure } from '../api/failure';
import { type LogLine, readLogLine } from '../components/log/log-lines';
import { useT } from '../i18n';
import { useLiveChanges } from '../live/LiveProvider';
import { LogReader } from './log-reader';

/** Older lines are dropped beyond this number. */
const MOST = 20_000;
/** New lines are shown together, this often. */
const FLUSH = 100;
/** Waiting times before a lost connection is opened again, in milliseconds; the last one is repeated. */
const AGAIN = [1000, 2000, 5000, 15_000];

/** The log of a container, as far as it was read. */
export interface ContainerLog {
  lines: LogLine[];
  /** Nothing was read yet. */
  loading: boolean;
  /** Failure of the last attempt to read. */
  failure?: Failure;
}

/**
 * Follows the log of a user's container, over restarts of the container and of the connection;
 * `own` when the user reads it.
 */
export function useContainerLog(username: string, own = false): ContainerLog {
  const t = useT();
  const [log, setLog] = useState<ContainerLog>({ lines: [], loading: true });
  const start = useRef<() => void>(undefined);
  useEffect(() => {
    let waiting: LogLine[] = [];
    let flush: ReturnType<typeof setTimeout> | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    let attempt = 0;
    let closed = false;
    let reading = false;
    const add = (line: LogLine): void => {
      waiting.push(line);
      flush ??= setTimeout(() => {
        const fresh = waiting;
        waiting = [];
        flush = undefined;
        setLog(({ lines }) => ({ lines: [...lines, ...fresh].slice(-MOST), loading: false }));
      }, FLUSH);
    };
    const path = own ? '/api/user/logs' : '/api/admin/container/logs';
    const reader = new LogReader(path, own ? {} : { username }, (line) => {
      attempt = 0;
      add(readLogLine(line));
    });
    const later = (): void => {
      again = setTimeout(() => void read(), AGAIN[Math.min(attempt, AGAIN.length - 1)]);
      attempt += 1;
    };
    const read = async (): Promise<void> => {
      if (reading || closed) return;
      clearTimeout(again);
      reading = true;
      try {
        await reader.follow();
        if (!closed && attempt === 0) add({ text: t(own ? 'log.agent.ended' : 'log.ended'), mark: true });
        if (!closed) setLog((old) => ({ lines: old.lines, loading: false }));
        // The next change of the container begins anew; this is for one that came before the end.
        if (!closed && attempt === 0) later();
      } catch (thrown) {
        const failure = Failure.from(thrown);
        if (!closed) setLog((old) => ({ lines: old.lines, loading: false, failure }));
        if (!closed && failure.code !== 'not_found') later();
      }
      reading = false;
    };
    start.current = () => void read();
    void read();
    return () => {
      closed = true;
      clearTimeout(flush);
      clearTimeout(again);
      reader.stop();
    };
  }, [t, username, own]);
  const onChange = useCallback(
    (change: { object: string } | 'resync') => {
      if (change === 'resync' || change.object === `container/${username}`) start.current?.();
    },
    [username],
  );
  useLiveChanges(onChange);
  return log;
}
