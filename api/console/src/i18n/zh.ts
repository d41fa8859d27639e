import { components } from './zh/components';
import { dashboard } from './zh/dashboard';
import { errors } from './zh/errors';
import { initializing } from './zh/initializing';
import { layout } from './zh/layout';
import { objects } from './zh/objects';
import { palette } from './zh/palette';
import { signin } from './zh/signin';
import { userDetail } from './zh/user-detail';
import { users } from './zh/users';
import type { MessageKey } from './en';

/** All messages in Chinese. A missing key does not compile. */
export const zh: Record<MessageKey, string> = {
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
