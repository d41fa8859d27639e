import { components } from './en/components';
import { dashboard } from './en/dashboard';
import { errors } from './en/errors';
import { initializing } from './en/initializing';
import { layout } from './en/layout';
import { objects } from './en/objects';
import { palette } from './en/palette';
import { signin } from './en/signin';
import { userDetail } from './en/user-detail';
import { users } from './en/users';

/** All messages in English; pages add their own file. */
export const en = {
  ...components,
  ...dashboard,
  ...errors,
  ...initializing,
  ...layout,
  ...objects,
  ...palette,
  ...signin,
  ...userDetail,
  ...users,
};

/** Key of a message. */
export type MessageKey = keyof typeof en;
