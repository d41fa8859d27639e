import type { MessageKey } from '../../i18n';
import type { QuickAction } from './useUserActions';
import type { UserDetail } from './useUserDetail';

/** Actions that show a dialog first. */
export type AskedAction =
  'stop' | 'debug' | 'disable' | 'move-image' | 'reset-password' | 'rotate-token' | 'delete';

/** Any action on a user. */
export type UserAction = QuickAction | AskedAction;

const ASKED = new Set<UserAction>([
  'stop',
  'debug',
  'disable',
  'move-image',
  'reset-password',
  'rotate-token',
  'delete',
]);

/** Returns true for an action that shows a dialog first. */
export function isAsked(action: UserAction): action is AskedAction {
  return ASKED.has(action);
}

/** Actions that apply to a user at the moment. */
export interface Applicable {
  /** At most two, the more useful one first. */
  buttons: UserAction[];
  /** The first button is what helps. */
  needsAction: boolean;
  menu: UserAction[];
}

export const ACTION_KEYS: Record<UserAction, MessageKey> = {
  retry: 'user.retry',
  restart: 'users.restart',
  start: 'users.start',
  stop: 'users.stop.dots',
  debug: 'user.debug',
  enable: 'users.enable',
  disable: 'users.disable.dots',
  'move-image': 'users.move.dots',
  'reset-password': 'user.reset',
  'rotate-token': 'user.rotate',
  delete: 'users.delete.dots',
};

/** Tells which actions fit the state of a user. */
export function applicableActions({ user, desired, state, row }: UserDetail): Applicable {
  const disabled = user?.standstill?.reason === 'disabled' || row?.disabled === true;
  const missing = user?.standstill?.reason === 'missing';
  const runs = desired?.desired === 'running';
  const bad = state !== undefined && state.tone !== 'ok' && state.tone !== 'off';
  const buttons: UserAction[] = disabled
    ? ['enable']
    : missing
      ? []
      : runs
        ? bad
          ? ['retry', 'restart']
          : ['restart', 'stop']
        : ['start'];
  const first: UserAction[] =
    disabled || missing ? ['retry'] : runs ? ['retry', 'restart', 'stop', 'debug'] : ['retry'];
  const asked: AskedAction[] = ['move-image', 'rotate-token'];
  if (row?.source === 'local') asked.push('reset-password');
  if (!disabled) asked.push('disable');
  asked.push('delete');
  return {
    buttons,
    needsAction: bad || !runs,
    menu: [...first.filter((action) => !buttons.includes(action)), ...asked],
  };
}
