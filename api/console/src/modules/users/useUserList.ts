import { useQuery } from '@tanstack/react-query';

import { Failure } from '../../api/failure';
import { usersQuery } from '../../api/queries/users';
import type { Schemas } from '../../api/types';
import { listQuery } from '../../components/table/list-state';
import { withSingleValues } from '../../components/table/single-values';
import { type ListControl, useListState } from '../../components/table/useListState';
import { USER_FILTERS, usersRequest } from './user-filters';

/** A page of the users that fit the filters of the address. */
export interface UserList {
  control: ListControl;
  data: Schemas['Users'] | undefined;
  failure: Failure | undefined;
  /** The previous page is shown while the next one loads. */
  isPrevious: boolean;
  retry: () => void;
}

/** Reads the users that fit the filters of the address. */
export function useUserList(): UserList {
  const control = withSingleValues(useListState(USER_FILTERS));
  const request = usersRequest(listQuery(control.state));
  const { data, error, refetch, isPlaceholderData: isPrevious } = useQuery(usersQuery(request));
  const failure = error ? Failure.from(error) : undefined;
  return { control, data, failure, isPrevious, retry: () => void refetch() };
}
