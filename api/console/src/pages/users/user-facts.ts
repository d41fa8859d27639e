import { needsAttention, type UserFacts } from '../../modules/users/applicable';
import type { UserDetail } from './useUserDetail';

/** Facts of the user of a page, which decide about actions. */
export function factsOfDetail({ user, desired, state, row }: UserDetail): UserFacts {
  return {
    disabled: user?.standstill?.reason === 'disabled' || row?.disabled === true,
    missing: user?.standstill?.reason === 'missing',
    runs: desired?.desired === 'running',
    isBad: needsAttention(state),
    isLocal: row?.source === 'local',
  };
}
