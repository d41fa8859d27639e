import { useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { useCallback, useEffect, useRef } from 'react';

import { keys } from '../api/keys';
import { taskQuery, type TaskWithResults } from '../api/queries/tasks';
import { useLiveChanges } from '../live/LiveProvider';

/** A task is read again at most this often while objects change. */
const GAP = 1000;

/** A task that is kept up to date: it is read again after changes of objects, until it has ended. */
export function useTask(id: string): UseQueryResult<TaskWithResults> {
  const client = useQueryClient();
  const query = useQuery(taskQuery(id));
  const ended = typeof query.data?.finished_at === 'string';
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const onChange = useCallback(() => {
    if (ended) return;
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: keys.object('task', id) });
    }, GAP);
  }, [client, ended, id]);
  useLiveChanges(onChange);
  return query;
}
