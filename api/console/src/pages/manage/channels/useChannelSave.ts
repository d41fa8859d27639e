import { useQueryClient } from '@tanstack/react-query';

import { type Fields, post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import type { Schemas } from '../../../api/types';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';

/** Seconds that the agent's restart is waited for. */
const WAIT = 30;

/** Returns the function that saves a channel and says whether the agent has it already. Throws what was refused. */
export function useChannelSave(): (path: string, body: Fields, channel: string) => Promise<void> {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  return async (path, body, channel) => {
    try {
      const { state } = await post<Schemas['Converging']>(path, { ...body, wait: WAIT });
      toasts.done(t(state === 'converged' ? 'channel.saved' : 'channel.saved.pending', { channel }));
    } catch (thrown) {
      // It is saved, but the agent has failed with it or with something else.
      const failure = Failure.from(thrown);
      if (failure.details.state !== 'failed') throw thrown;
      toasts.fail(t('channel.saved.failed', { channel }), failure);
    }
    await client.invalidateQueries({ queryKey: ['list', 'agent-config'] });
  };
}
