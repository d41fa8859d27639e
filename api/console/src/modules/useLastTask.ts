import { useState } from 'react';

import { readDraft, storeDraft } from './drafts';

/** The task that was started last from a page, kept until it is dismissed. */
export interface LastTask {
  task: string | undefined;
  setTask: (task: string | undefined) => void;
}

/** Keeps the task that was started last from the page `name`, through a reload. */
export function useLastTask(name: string): LastTask {
  const [task, setState] = useState(() => readDraft(name) as string | undefined);
  const setTask = (next: string | undefined): void => {
    setState(next);
    storeDraft(name, next);
  };
  return { task, setTask };
}
