import { useState } from 'react';

import { readDraft, storeDraft } from '../drafts';

const NAME = 'users-task';

/** The task that was started last from the list, kept until it is dismissed. */
export interface LastTask {
  task: string | undefined;
  setTask: (task: string | undefined) => void;
}

/** Keeps the task that was started last, through a reload. */
export function useLastTask(): LastTask {
  const [task, setState] = useState(() => readDraft(NAME) as string | undefined);
  const setTask = (next: string | undefined): void => {
    setState(next);
    storeDraft(NAME, next);
  };
  return { task, setTask };
}
