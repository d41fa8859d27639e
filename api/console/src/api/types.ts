import type { components } from '../generated/schema';

/** Types of the API by their names in its document. */
export type Schemas = components['schemas'];
export type Condition = Schemas['ExplainedCondition'];
export type UserInfo = Schemas['UserInfo'];
export type LoginMode = Schemas['LoginMode'];
export type SignedIn = Schemas['SignedIn'];
export type Problem = NonNullable<Schemas['Failure']['problems']>[number];
/** Page of a list. */
export type Page = Schemas['Page'];
