import type { MessageKey } from '../i18n';

/** Types of tasks in words; another type stands for itself. */
export const TASK_TYPES: Record<string, MessageKey> = {
  batch_create: 'task.create',
  users_start: 'task.start',
  users_stop: 'task.stop',
  users_restart: 'task.restart',
  users_disable: 'task.disable',
  users_enable: 'task.enable',
  users_delete: 'task.delete',
  users_add_to_group: 'task.add',
  users_remove_from_group: 'task.remove',
  upgrade: 'task.upgrade',
  migrate: 'task.migrate',
  config: 'task.config',
  adapter: 'task.adapter',
  config_apply: 'task.apply',
  pull: 'task.pull',
  skills: 'task.skills',
  mode_switch: 'task.mode',
};

/** Types that the server can cancel. */
export const CANCELLABLE = new Set(['upgrade', 'migrate', 'config', 'adapter', 'config_apply', 'pull']);

/** Types whose task is a rollout with a page of its own. */
export const ROLLOUTS = new Set(['upgrade', 'migrate', 'config', 'adapter']);
