import { dashboard } from './en/dashboard';
import { components } from './en/components';
import { errors } from './en/errors';
import { layout } from './en/layout';
import { objects } from './en/objects';
import { signin } from './en/signin';

/** All messages in English; pages add their own file. */
export const en = { ...components, ...dashboard, ...errors, ...layout, ...objects, ...signin };

/** Key of a message. */
export type MessageKey = keyof typeof en;
