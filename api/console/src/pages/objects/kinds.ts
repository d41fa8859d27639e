import { agent, containers, images, skills } from './agent-listings';
import { executors, groups } from './people-listings';
import { rollouts } from './rollout-listing';
import { archives, audit, events, tasks } from './work-listings';

/** Sections that have no page of their own yet, by their addresses. */
export const LISTED = {
  groups,
  containers,
  images,
  agent,
  skills,
  executors,
  rollouts,
  tasks,
  events,
  audit,
  archives,
};

/** Address of a read-only list. */
export type ListedSection = keyof typeof LISTED;
