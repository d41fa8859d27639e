import { useMutation, type UseMutationResult, useQueryClient } from '@tanstack/react-query';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { ownAgentQuery } from '../../api/queries/own';
import type { Schemas } from '../../api/types';
import { useToasts } from '../../components/toast-store';
import { useT, useTranslation } from '../../i18n';
import { duration } from '../../i18n/values';

/** Seconds that a restart is waited for before it goes on by itself. */
const WAIT = 60;

/** Restarts the user's agent and says how long it took. */
export function useRestart(): UseMutationResult<Schemas['Converging'], Error, void> {
  const t = useT();
  const { language } = useTranslation();
  const toasts = useToasts();
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      const begun = Date.now();
      const done = await post<Schemas['Converging']>('/api/user/container/restart', { wait: WAIT });
      const time = duration((Date.now() - begun) / 1000, language);
      toasts.done(done.state === 'converged' ? t('agent.restarted', { time }) : t('agent.restart.goes.on'));
      return done;
    },
    onError: (error) => toasts.fail(t('agent.restart.failed'), Failure.from(error)),
    onSettled: () => client.invalidateQueries({ queryKey: ownAgentQuery.queryKey }),
  });
}
