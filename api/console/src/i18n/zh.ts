import { dashboard } from './zh/dashboard';
import { components } from './zh/components';
import { errors } from './zh/errors';
import { layout } from './zh/layout';
import { objects } from './zh/objects';
import { signin } from './zh/signin';
import type { MessageKey } from './en';

/** All messages in Chinese. A missing key does not compile. */
export const zh: Record<MessageKey, string> = {
  ...components,
  ...dashboard,
  ...errors,
  ...layout,
  ...objects,
  ...signin,
};
