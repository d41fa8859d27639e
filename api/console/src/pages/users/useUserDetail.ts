import { useQuery } from '@tanstack/react-query';

import { Failure } from '../../api/failure';
import { describeQuery, type Described, userRowQuery, type UserRow } from '../../api/queries/users';
import type { Schemas } from '../../api/types';
import { shownState, type ShownState } from '../../modules/state';

/** All that the head of a user's page needs. */
export interface UserDetail {
  user?: Described;
  container?: Described;
  row?: UserRow | null;
  /** The part that is worst: `container/bob`. */
  worst?: Described;
  desired?: Schemas['DesiredContainer'];
  observed?: Schemas['ObservedContainer'];
  state?: ShownState;
  failure?: Failure;
  retry: () => void;
}

/** Reads a user with the container and, when another part is worse, that. */
export function useUserDetail(name: string): UserDetail {
  const user = useQuery(describeQuery('user', name));
  const container = useQuery(describeQuery('container', name));
  const { data: row } = useQuery(userRowQuery(name));
  const health = user.data?.health;
  const [kind = '', object = ''] = (health?.object ?? '').split('/', 2);
  const isOther = kind !== '' && kind !== 'user' && kind !== 'container';
  const other = useQuery({ ...describeQuery(kind, object), enabled: isOther });
  const worst = isOther ? other.data : kind === 'user' ? user.data : container.data;
  return {
    user: user.data,
    container: container.data,
    row,
    worst,
    desired: container.data?.desired as Schemas['DesiredContainer'] | undefined,
    observed: container.data?.observed as Schemas['ObservedContainer'] | undefined,
    state: user.data && stateOfDetail(user.data, worst),
    failure: user.error && user.data === undefined ? Failure.from(user.error) : undefined,
    retry: () => void user.refetch(),
  };
}

/** The state of a user: of the worst part, with the progress that its condition tells. */
function stateOfDetail({ health, deleted_at: deleted }: Described, worst?: Described): ShownState {
  if (deleted) return { tone: 'wait', label: 'state.deleting' };
  if (!health) return { tone: 'unknown', label: 'state.unknown' };
  const { percent, waits_for } = worst?.conditions.find(({ reason }) => reason === health.reason) ?? {};
  return shownState({ ...health, percent, waits_for });
}
