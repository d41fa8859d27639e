import type { ReasonTexts } from '../../modules/reasons';

/** Each reason of a condition as a sentence, and what to do about it; empty when there is nothing to do. */
export const reasons: ReasonTexts = {
  Pending: ['Nothing is known yet', 'It is looked at in a moment.'],
  Running: ['Running', ''],
  Stopped: ['Stopped', ''],
  Disabled: [
    'Stopped, because the account is disabled',
    'Enable the user to start the agent; a user who is missing from the directory is enabled once the directory has them again.',
  ],
  Converged: ['As desired', ''],
  UpdateAvailable: [
    'A newer adapter is there',
    'Activate it when you are ready, or set adapter.auto_activate.',
  ],
  Progressing: ['Changes are under way', 'Nothing to do; it continues by itself.'],
  NotReady: ['Started, but not ready yet', 'Wait a moment. If it does not become ready, read the log.'],
  EngineUnavailable: [
    'The container engine cannot be reached',
    'Start the engine or correct its address, as engine/local says; everything goes on by itself then.',
  ],
  EngineTooOld: [
    'The container engine is too old',
    'Upgrade it to the version that the message names, or newer.',
  ],
  DataDirMismatch: [
    'The engine sees another data directory',
    'Set --engine-data-dir to the path of the data directory on the engine’s host.',
  ],
  NetworkMissing: [
    'The agents’ network is not there yet',
    'Wait; it is created by itself. If this lasts, look at engine/local.',
  ],
  NetworkInUse: [
    'The agents’ network cannot be replaced while containers use it',
    'Stop all agents, or set container.network_subnet back.',
  ],
  NetworkFull: [
    'The agents’ network has no free address',
    'Delete users, or stop all agents and set a larger container.network_subnet.',
  ],
  ImageMissing: [
    'The image is not on the engine',
    'Load it there, or set image.pull_policy to missing or always.',
  ],
  ImagePulling: ['The image is being pulled', 'Wait until the pull has finished.'],
  ImagePullFailed: [
    'The image cannot be pulled',
    'Check image.name, image.tag, image.registry_username and image.registry_password; it is tried again by itself.',
  ],
  PullFailed: ['The requested pull failed', 'Correct what the message names, then pull again.'],
  ImageInUse: [
    'The image is to be deleted, but users have it',
    'Move its users to another image; it is deleted by itself then.',
  ],
  RolloutPaused: [
    'The rollout is paused: a user did not become ready',
    'Look at the failed users, then resume, roll back or cancel it.',
  ],
  RolloutFailed: [
    'The rollout ended with users that could not be moved',
    'Look at the failed users, then start another rollout for them or roll this one back.',
  ],
  ConfigPending: ['Waits for the agent’s files', 'Nothing to do; they are written by themselves.'],
  InvalidUserConfig: [
    'A file of the agent cannot be read',
    'Correct or delete the file that the message names, then retry.',
  ],
  NoMigrationPath: [
    'The agent’s files do not fit the image',
    'Choose an image that reads them, or an adapter that can convert them.',
  ],
  InvalidGlobalConfig: [
    'The global agent settings cannot be used',
    'Correct agent and security in the configuration.',
  ],
  AdapterSourceFailed: [
    'The source of adapter packages cannot be read',
    'Check adapter.source_url and that the server reaches it; it is tried again by itself.',
  ],
  AdapterInvalid: [
    'The adapter package is not valid',
    'Correct it as the message says; the active adapter stays in use.',
  ],
  ProviderFailed: [
    'The identity provider cannot be used',
    'Check the oidc settings and the provider; users cannot sign in until then.',
  ],
  GroupsLeftOut: [
    'Groups of the identity provider were left out',
    'Correct what the message names at the provider, or oidc.groups_claim; groups are read at each sign-in.',
  ],
  Renamed: ['The user was renamed', 'The account is the same; the user signs in with the new name.'],
  DirectoryFailed: [
    'The directory cannot be read',
    'Check the ldap settings and the directory; it is asked again by itself.',
  ],
  MassRemoval: [
    'A synchronisation would remove too many users',
    'Nothing was removed. Compare the names, then confirm or correct the search.',
  ],
  NameConflict: [
    'Something of this name belongs to others',
    'Rename or remove it; Agentyard never touches what it does not own. If another Agentyard uses this engine, give this one an engine of its own.',
  ],
  SkillMissing: [
    'The files of the skill are missing',
    'Upload or install it again, or roll it back to a version that is there.',
  ],
  NoManifest: ['The skill has no SKILL.md', 'Agents find skills by it: add one and upload the skill again.'],
  Cloning: ['The repository is being cloned', 'Wait until it has finished.'],
  CloneFailed: ['The repository could not be cloned', 'Correct what the message names, then pull it again.'],
  HostKeyChanged: [
    'The repository’s host has another key than before',
    'If that is right, save the repository with the old key forgotten, then pull it.',
  ],
  HomeConflict: [
    'The user’s folder cannot be used',
    'Look at it on the server: it has another owner or is no folder.',
  ],
  HomeMissing: ['The user’s folder is not there yet', 'Nothing to do; it is created by itself.'],
  Unschedulable: [
    'No machine has room for the agent',
    'Add machines or free their memory and processors, or lower the limits; it starts by itself once there is room.',
  ],
  VolumePending: [
    'The user’s folder cannot be mounted yet',
    'Check the volume of the data directory and its storage class; the mount is tried again by itself.',
  ],
  Evicted: [
    'The agent’s machine was short of something',
    'It is started again by itself; if that happens often, give the machines more room or the agents lower limits.',
  ],
  NodeLost: [
    'The agent’s machine does not answer',
    'Bring the machine back or remove it from the engine; no second agent is started before.',
  ],
  EngineForbidden: ['The server lacks a right on the engine', 'Give it the right that the message names.'],
  EngineQuota: [
    'A quota of the engine is used up',
    'Raise the quota that the message names, or stop or limit other agents.',
  ],
  CrashLoop: [
    'The agent ends soon after each start',
    'Read its log, correct the image or the settings, then restart it.',
  ],
  Unresponsive: [
    'The agent does not answer any more',
    'It is restarted by itself; if it happens again, read the log.',
  ],
  StartFailed: [
    'The engine fails to start the agent',
    'It is recreated by itself after three failed starts; a restart does that at once.',
  ],
  Exited: ['The agent has ended by itself', 'It is restarted by itself; the log says why it ended.'],
  ReplacementFailed: [
    'The new container did not become ready; the old one is back',
    'Read the events, correct the image or the settings, or restart the agent to try again.',
  ],
  NeedsRoot: [
    'The adapter needs a server that runs as root',
    'Run the server as root, or choose an adapter with run_as=service.',
  ],
  HostOpen: [
    'Agents can reach services of the host',
    'Run the server as root on the engine’s host with iptables, or set container.host_access=open to accept it.',
  ],
  IsolationNotEnforced: [
    'Agents reach what they must not reach',
    'Use a network plug-in that enforces network policies; agents that wait start by themselves then.',
  ],
  InvalidSettings: [
    'The engine refused the container’s settings',
    'Correct the settings that the message names.',
  ],
  QuotaExceeded: [
    'The files take more space than allowed',
    'Remove files, or raise files.quota_mb or files.quota_files.',
  ],
  QuotaNearlyUsed: [
    'The space for files is nearly used up',
    'Remove files, or raise files.quota_mb or files.quota_files.',
  ],
  WithinQuota: ['There is enough space for files', ''],
  StorageFull: ['The storage is full', 'Free space on the engine’s storage or in the data directory.'],
  Retrying: ['The last attempt failed; another one follows', 'Wait for the next attempt, or retry now.'],
  Failed: ['It failed, and trying again does not help', 'Correct what the message names, then retry.'],
  Panicked: ['The server made an error here', 'It is tried again. Please report the server’s log.'],
  NoProgress: [
    'Something changes it back again and again',
    'Find out what else changes it; it is tried again at growing intervals.',
  ],
  Terminating: ['Being removed', 'Nothing to do; it continues by itself.'],
  PausedByOperator: ['Paused by an administrator', 'Resume it when you are done.'],
  WatchLost: [
    'Changes are noticed late',
    'Check the connection to the engine or database; it is restored by itself.',
  ],
  WatchRestored: ['Changes are noticed at once again', ''],
  TaskEnded: [
    'A part of the server ended',
    'The server is restarted by its supervisor. Please report its log.',
  ],
  FileSetAside: [
    'A file was set aside',
    'The server ended twice while it read this file. It lies beside its former place, under the name in the message.',
  ],
  StorageLow: ['The storage is nearly full', 'Free space for the data directory and the database.'],
  BackupFailed: [
    'The newest backup failed',
    'Check the directory of the backups; the events of the server say what failed.',
  ],
  CertificateRefused: [
    'The new certificate cannot be used',
    'Correct the files of the certificate and its key; the log of the server says what is wrong.',
  ],
  StorageFailed: [
    'The database cannot use its storage',
    'Check the disk, and whether it is mounted read-only.',
  ],
  DatabaseUnavailable: [
    'The database cannot be reached',
    'Start it or restore the connection; everything goes on by itself then.',
  ],
  LeaseLost: [
    'Another process leads now',
    'Check the database and the connection to it; it continues by itself.',
  ],
  Stuck: ['Work is queued, but nothing moves', 'Report the log; restart the server if it does not recover.'],
  Recovered: ['Work goes on again', ''],
};
