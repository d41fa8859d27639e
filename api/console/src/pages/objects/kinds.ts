import { agent, containers, skills } from './agent-listings';
import { executors, groups } from './people-listings';
import { archives, audit, events, tasks } from './work-listings';

/** Sections that have no page of their own yet, by their addresses. */
export const LISTED = {
  groups,
  containers,
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
