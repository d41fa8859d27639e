import { dashboard } from './en/dashboard';
import { components } from './en/components';
import { errors } from './en/errors';
import { layout } from './en/layout';
import { signin } from './en/signin';

/** All messages in English; pages add their own file. */
export const en = { ...components, ...dashboard, ...errors, ...layout, ...signin };

/** Key of a message. */
export type MessageKey = keyof typeof en;
