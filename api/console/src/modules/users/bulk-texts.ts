import type { MessageKey } from '../../i18n';
import type { BulkAction } from './bulk';

/** Texts of an action on several users. */
export interface BulkText {
  /** On the button. */
  button: MessageKey;
  /** The verb with the number of users. */
  verb: MessageKey;
  /** Effect on the users. */
  effect: MessageKey;
}

export const BULK_TEXTS: Record<BulkAction, BulkText> = {
  start: { button: 'users.start', verb: 'bulk.start', effect: 'bulk.start.effect' },
  stop: { button: 'users.stop', verb: 'bulk.stop', effect: 'bulk.stop.effect' },
  restart: { button: 'users.restart', verb: 'bulk.restart', effect: 'bulk.restart.effect' },
  disable: { button: 'users.disable', verb: 'bulk.disable', effect: 'bulk.disable.effect' },
  enable: { button: 'users.enable', verb: 'bulk.enable', effect: 'bulk.enable.effect' },
  delete: { button: 'users.delete', verb: 'bulk.delete', effect: 'bulk.delete.effect' },
  'move-image': { button: 'users.move', verb: 'bulk.move', effect: 'bulk.move.effect' },
  'add-to-group': { button: 'users.add', verb: 'bulk.add', effect: 'bulk.add.effect' },
  'remove-from-group': { button: 'users.remove', verb: 'bulk.remove', effect: 'bulk.remove.effect' },
};

/** Reasons for leaving out users, by the server's code. */
export const SKIP_TEXTS: Record<string, MessageKey> = {
  not_found: 'bulk.skip.not_found',
  name_being_removed: 'bulk.skip.name_being_removed',
  account_disabled: 'bulk.skip.account_disabled',
  already_started: 'bulk.skip.already_started',
  already_stopped: 'bulk.skip.already_stopped',
  already_disabled: 'bulk.skip.already_disabled',
  already_enabled: 'bulk.skip.already_enabled',
  missing_from_directory: 'bulk.skip.missing_from_directory',
  already_member: 'bulk.skip.already_member',
  not_a_member: 'bulk.skip.not_a_member',
};
