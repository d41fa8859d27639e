import type { Schemas } from './types';

/** A skill that the user gets. */
export interface OwnSkill {
  name: string;
  version: string;
  description: string;
  bindings: { by: 'own' | 'group' | 'default'; group?: string; via?: string }[];
  deployed: boolean;
  reason?: string;
}

/** Skills of the user. */
export type OwnSkills = Schemas['Page'] & { skills: OwnSkill[] };

/** Something in the trash of the workspace. */
export interface TrashEntry {
  id: string;
  name: string;
  /** Where it was; null when that is not known any more. */
  path: string | null;
  is_dir: boolean;
  size: number;
  deleted_at: string;
  removed_after: string;
}

/** The trash of the workspace. */
export type Trash = Schemas['Page'] & { entries: TrashEntry[] };

/** A channel in the words of its form. */
export interface ChannelSection {
  key: string;
  label: string;
  help?: string;
}

/** Fields of all channels. */
export type ChannelFields = Schemas['AgentFields'] & { sections?: ChannelSection[] };

/** How far the own container is, with the steps that are next. */
export type InitStatus = Schemas['InitStatus'] & { plan?: { actions: string[] } | null };
