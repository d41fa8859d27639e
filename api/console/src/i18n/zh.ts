import { account } from './zh/account';
import { apiTokens } from './zh/api-tokens';
import { auth } from './zh/auth';
import { channels } from './zh/channels';
import { chat } from './zh/chat';
import { components } from './zh/components';
import { config } from './zh/config';
import { connect } from './zh/connect';
import { containers } from './zh/containers';
import { dashboard } from './zh/dashboard';
import { errors } from './zh/errors';
import { files } from './zh/files';
import { images } from './zh/images';
import { groupsSkills } from './zh/groups-skills';
import { initializing } from './zh/initializing';
import { layout } from './zh/layout';
import { manage } from './zh/manage';
import { mcp } from './zh/mcp';
import { model } from './zh/model';
import { objects } from './zh/objects';
import { palette } from './zh/palette';
import { rollouts } from './zh/rollouts';
import { reconcile } from './zh/reconcile';
import { records } from './zh/records';
import { signin } from './zh/signin';
import { superadmins } from './zh/superadmins';
import { userDetail } from './zh/user-detail';
import { users } from './zh/users';
import type { MessageKey } from './en';

/** All messages in Chinese. A missing key does not compile. */
export const zh: Record<MessageKey, string> = {
  ...account,
  ...auth,
  ...channels,
  ...chat,
  ...components,
  ...config,
  ...connect,
  ...containers,
  ...dashboard,
  ...errors,
  ...files,
  ...images,
  ...groupsSkills,
  ...initializing,
  ...layout,
  ...manage,
  ...mcp,
  ...model,
  ...objects,
  ...palette,
  ...rollouts,
  ...reconcile,
  ...records,
  ...signin,
  ...apiTokens,
  ...superadmins,
  ...userDetail,
  ...users,
};
