import { agent, skills } from './agent-listings';
import { objects } from './object-listing';
import { executors, groups } from './people-listings';
import { audit, events } from './record-listings';
import { archives, tasks } from './work-listings';

/** Lists that are read only, by the last part of their addresses. */
export const LISTED = {
  objects,
  groups,
  agent,
  skills,
  executors,
  tasks,
  events,
  audit,
  archives,
};

/** Address of a read-only list. */
export type ListedSection = keyof typeof LISTED;
