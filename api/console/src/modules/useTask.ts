import { useQuery, type UseQueryResult } from '@tanstack/react-query';

import { keys } from '../api/keys';
import { taskQuery, type TaskWithResults } from '../api/queries/tasks';
import { useReadAgain } from './useReadAgain';

/** A task that is kept up to date: it is read again after changes of objects, until it has ended. */
export function useTask(id: string): UseQueryResult<TaskWithResults> {
  const query = useQuery(taskQuery(id));
  useReadAgain(keys.object('task', id), typeof query.data?.finished_at === 'string');
  return query;
}
