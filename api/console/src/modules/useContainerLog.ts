import { useCallback, useEffect, useEffectEvent, useRef, useState } from 'react';

import { useT } from '../i18n';
import { useLiveChanges } from '../live/LiveProvider';
import { type ContainerLog, LogFollower, UNREAD } from './log-follower';

/** A hidden tab gives up its connection after this time: browsers have few of them. */
const HIDDEN = 30_000;

/**
 * Follows the log of a user's container, over restarts of the container and of the connection;
 * `own` when the user reads it.
 */
export function useContainerLog(username: string, own = false): ContainerLog {
  const t = useT();
  const endMark = useEffectEvent(() => t(own ? 'log.agent.ended' : 'log.ended'));
  const [shown, setShown] = useState({ username, log: UNREAD });
  const follower = useRef<LogFollower>(undefined);
  useEffect(() => {
    const path = own ? '/api/user/logs' : '/api/admin/container/logs';
    const show = (log: ContainerLog): void => setShown({ username, log });
    const current = new LogFollower(path, own ? {} : { username }, show, () => endMark());
    follower.current = current;
    let hiding: ReturnType<typeof setTimeout> | undefined;
    const seen = (): void => {
      clearTimeout(hiding);
      if (document.hidden) hiding = setTimeout(() => current.stop(), HIDDEN);
      else current.start();
    };
    current.start();
    document.addEventListener('visibilitychange', seen);
    return () => {
      clearTimeout(hiding);
      document.removeEventListener('visibilitychange', seen);
      current.close();
    };
  }, [username, own]);
  const onChange = useCallback(
    (change: { object: string } | 'resync') => {
      if (document.hidden) return;
      if (change === 'resync' || change.object === `container/${username}`) follower.current?.start();
    },
    [username],
  );
  useLiveChanges(onChange);
  return shown.username === username ? shown.log : UNREAD;
}
