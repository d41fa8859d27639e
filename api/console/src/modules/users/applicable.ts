import type { UserRow } from '../../api/queries/users';
import type { MessageKey } from '../../i18n';
import type { ShownState } from '../state';
import { stateOfUser } from './user-state';
import type { QuickAction } from './useUserActions';

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

/** Facts that decide which actions fit a user. */
export interface UserFacts {
  disabled: boolean;
  /** Missing from the directory. */
  missing: boolean;
  /** The agent is to run. */
  runs: boolean;
  /** The user's state needs attention. */
  isBad: boolean;
  /** The account is managed here. */
  isLocal: boolean;
}

/** Tells whether a state needs attention. */
export function needsAttention(state: ShownState | undefined): boolean {
  return state !== undefined && state.tone !== 'ok' && state.tone !== 'off';
}

/** Facts of a user in a list. */
export function factsOfRow(row: UserRow): UserFacts {
  return {
    disabled: row.disabled || row.standstill?.reason === 'disabled',
    missing: row.standstill?.reason === 'missing',
    runs: row.desired === 'running',
    isBad: needsAttention(stateOfUser(row)),
    isLocal: row.source === 'local',
  };
}

/** Tells which actions fit the state of a user. */
export function applicableActions({ disabled, missing, runs, isBad, isLocal }: UserFacts): Applicable {
  const buttons: UserAction[] = disabled
    ? ['enable']
    : missing
      ? []
      : runs
        ? isBad
          ? ['retry', 'restart']
          : ['restart', 'stop']
        : ['start'];
  const first: UserAction[] =
    disabled || missing ? ['retry'] : runs ? ['retry', 'restart', 'stop', 'debug'] : ['retry'];
  const asked: AskedAction[] = ['move-image', 'rotate-token'];
  if (isLocal) asked.push('reset-password');
  if (!disabled) asked.push('disable');
  asked.push('delete');
  return {
    buttons,
    needsAction: isBad || !runs,
    menu: [...first.filter((action) => !buttons.includes(action)), ...asked],
  };
}
