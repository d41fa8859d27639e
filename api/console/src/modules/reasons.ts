import type { components } from '../generated/schema';

/** Reason code of a condition. */
export type Reason = components['schemas']['Reason'];

/** For each reason a sentence, and what to do about it. */
export type ReasonTexts = Record<Reason, readonly [title: string, remedy: string]>;

/** Reasons that pass only by manual action, as the server's list of reasons has them. */
export const MANUAL: ReadonlySet<Reason> = new Set<Reason>([
  'EngineTooOld',
  'DataDirMismatch',
  'NetworkInUse',
  'NetworkFull',
  'ImageMissing',
  'ImagePullFailed',
  'PullFailed',
  'ImageInUse',
  'RolloutPaused',
  'RolloutFailed',
  'InvalidUserConfig',
  'NoMigrationPath',
  'InvalidGlobalConfig',
  'AdapterSourceFailed',
  'AdapterInvalid',
  'ProviderFailed',
  'DirectoryFailed',
  'MassRemoval',
  'NameConflict',
  'SkillMissing',
  'CloneFailed',
  'HostKeyChanged',
  'HomeConflict',
  'Unschedulable',
  'VolumePending',
  'NodeLost',
  'EngineForbidden',
  'EngineQuota',
  'CrashLoop',
  'ReplacementFailed',
  'NeedsRoot',
  'HostOpen',
  'IsolationNotEnforced',
  'InvalidSettings',
  'QuotaExceeded',
  'StorageFull',
  'Failed',
  'PausedByOperator',
]);
