import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import type { Schemas } from '../../api/types';
import { useToasts } from '../../components/toast-store';
import { type MessageKey, useT, useTranslation } from '../../i18n';
import { takenTime } from '../human-time';

/** Actions that are done at once. */
export type QuickAction = 'retry' | 'restart' | 'start' | 'enable';

interface Quick {
  path: string;
  done: MessageKey;
  pending: MessageKey;
  failed: MessageKey;
}

const QUICK: Record<QuickAction, Quick> = {
  retry: {
    path: '/api/admin/reconcile/retry',
    done: 'act.retry.done',
    pending: 'act.retry.done',
    failed: 'act.retry.failed',
  },
  restart: {
    path: '/api/admin/container/restart',
    done: 'act.restart.done',
    pending: 'act.restart.pending',
    failed: 'act.restart.failed',
  },
  start: {
    path: '/api/admin/container/start',
    done: 'act.start.done',
    pending: 'act.start.pending',
    failed: 'act.start.failed',
  },
  enable: {
    path: '/api/admin/users/enable',
    done: 'act.enable.done',
    pending: 'act.enable.pending',
    failed: 'act.enable.failed',
  },
};

/** Immediate actions on a user, and the one under way. */
export interface UserActions {
  working: QuickAction | undefined;
  act: (action: QuickAction) => void;
}

/** Does the actions that need no preview, and says what came of them. `worst` is the object to retry. */
export function useUserActions(name: string, worst: string): UserActions {
  const t = useT();
  const { language } = useTranslation();
  const toasts = useToasts();
  const client = useQueryClient();
  const [working, setWorking] = useState<QuickAction>();
  const run = async (action: QuickAction): Promise<void> => {
    const { path, done, pending, failed } = QUICK[action];
    setWorking(action);
    const begun = Date.now();
    try {
      const [kind, object] = worst.split('/', 2);
      const body = action === 'retry' ? { kind, name: object } : { username: name };
      const { state } = await post<Partial<Schemas['Converging']>>(path, body);
      const time = takenTime((Date.now() - begun) / 1000, language);
      if (state === 'failed') toasts.fail(t(failed, { name }), new Failure(200, 'not_converged', ''));
      else toasts.done(t(state === 'pending' ? pending : done, { name, time }));
    } catch (thrown) {
      toasts.fail(t(failed, { name }), Failure.from(thrown));
    }
    void client.invalidateQueries({ queryKey: keys.object('user', name) });
    void client.invalidateQueries({ queryKey: keys.object('container', name) });
    setWorking(undefined);
  };
  return { working, act: (action) => void run(action) };
}
