import { account } from './en/account';
import { apiTokens } from './en/api-tokens';
import { auth } from './en/auth';
import { channels } from './en/channels';
import { chat } from './en/chat';
import { components } from './en/components';
import { config } from './en/config';
import { connect } from './en/connect';
import { containers } from './en/containers';
import { dashboard } from './en/dashboard';
import { errors } from './en/errors';
import { files } from './en/files';
import { images } from './en/images';
import { groupsSkills } from './en/groups-skills';
import { initializing } from './en/initializing';
import { layout } from './en/layout';
import { manage } from './en/manage';
import { mcp } from './en/mcp';
import { model } from './en/model';
import { objects } from './en/objects';
import { palette } from './en/palette';
import { rollouts } from './en/rollouts';
import { reconcile } from './en/reconcile';
import { records } from './en/records';
import { signin } from './en/signin';
import { superadmins } from './en/superadmins';
import { userDetail } from './en/user-detail';
import { users } from './en/users';

/** All messages in English; pages add their own file. */
export const en = {
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

/** Key of a message. */
export type MessageKey = keyof typeof en;
