import { queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** A task, with the results of its objects where they could be found. */
export type TaskWithResults = Schemas['TaskStatus'] & Partial<Pick<Schemas['Task'], 'actor' | 'results'>>;

const PAGES = 5;

/** Progress of a task and its results, which stand in the list of tasks. */
export function taskQuery(id: string) {
  return queryOptions({
    queryKey: keys.object('task', id),
    queryFn: async ({ signal }): Promise<TaskWithResults> => {
      const status = await get<Schemas['TaskStatus']>('/api/admin/task/status', { task_id: id }, { signal });
      for (let page = 1; page <= PAGES; page += 1) {
        const list = await get<Schemas['Tasks']>('/api/admin/tasks', { page, page_size: 10 }, { signal });
        const task = list.tasks.find((one) => one.id === id);
        if (task !== undefined) return task;
        if (page >= list.total_pages) break;
      }
      return status;
    },
  });
}
