import { useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, use, useEffect, useMemo, useState } from 'react';

import { readSession } from '../api/queries/session';
import { onSessionChange, sessionHasEnded } from '../api/session';
import { ownUrl } from '../prefix';
import { connect } from './connection';
import { Invalidator } from './invalidate';
import type { Change, LiveMessage } from './messages';
import { type Phase, PhaseClock } from './phase';
import { SlowPoll } from './slow-poll';

type Listener = (change: Change | 'resync') => void;

interface Live {
  phase: Phase;
  listen: (listener: Listener) => () => void;
}

const LiveContext = createContext<Live>({ phase: { name: 'connecting' }, listen: () => () => undefined });

interface Props {
  path: string;
  account: string;
  children: ReactNode;
}

/** Joins the browser's one stream of `path` for the account and keeps all queries up to date by it. */
export function LiveProvider({ path, account, children }: Props): ReactNode {
  const client = useQueryClient();
  const [phase, setPhase] = useState<Phase>({ name: 'connecting' });
  const [listeners] = useState(() => new Set<Listener>());
  useEffect(() => {
    const poll = new SlowPoll(client, (since) => setPhase({ name: 'away', since }));
    const clock = new PhaseClock((now) => {
      setPhase(now);
      if (now.name === 'away') poll.start(now.since);
      else poll.stop();
    });
    const invalidator = new Invalidator(client);
    const tell = (message: LiveMessage): void => {
      if (message.type === 'connected') clock.connected();
      else if (message.type === 'change') {
        invalidator.add(message.change);
        for (const listener of listeners) listener(message.change);
      } else if (message.type === 'resync') {
        invalidator.all();
        for (const listener of listeners) listener('resync');
      } else clock.lost();
      // The request finds out that the session has ended, and its dialog asks for a new one.
      if (message.type === 'ended') void readSession().then(connection.restart, () => undefined);
      // Another account may have signed in.
      if (message.type === 'refused') void readSession().catch(() => undefined);
    };
    const url = ownUrl(path);
    const connection = connect({ name: `agentyard ${account} ${url}`, url, tell });
    const stopListening = onSessionChange(() => {
      if (!sessionHasEnded()) connection.restart();
    });
    return () => {
      stopListening();
      connection.close();
      invalidator.stop();
      clock.stop();
      poll.stop();
    };
  }, [path, account, client, listeners]);
  const live = useMemo<Live>(() => {
    const listen = (listener: Listener): (() => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    };
    return { phase, listen };
  }, [phase, listeners]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

/** The state of the connection, for the pill and the banner. */
export function useLivePhase(): Phase {
  return use(LiveContext).phase;
}

/** Calls `listener` with every change; for what is no query. */
export function useLiveChanges(listener: Listener): void {
  const { listen } = use(LiveContext);
  useEffect(() => listen(listener), [listen, listener]);
}
