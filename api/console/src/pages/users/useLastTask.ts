import { useState } from 'react';

const STORED = 'agentyard-users-task';

function read(): string | undefined {
  try {
    return sessionStorage.getItem(STORED) ?? undefined;
  } catch {
    return undefined;
  }
}

/** The task that was started last from the list, kept until it is dismissed. */
export interface LastTask {
  task: string | undefined;
  setTask: (task: string | undefined) => void;
}

/** Keeps the task that was started last, through a reload. */
export function useLastTask(): LastTask {
  const [task, setState] = useState(read);
  const setTask = (next: string | undefined): void => {
    setState(next);
    try {
      if (next === undefined) sessionStorage.removeItem(STORED);
      else sessionStorage.setItem(STORED, next);
    } catch {
      // Storage may be switched off: then a reload forgets the task.
    }
  };
  return { task, setTask };
}
