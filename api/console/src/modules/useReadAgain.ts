import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef } from 'react';

import { useLiveChanges } from '../live/LiveProvider';

/** It is read again at most this often while objects change. */
const GAP = 1000;

/** Has queries read again after changes of any object, until what they show has ended. */
export function useReadAgain(queryKey: QueryKey, ended: boolean): void {
  const client = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const key = JSON.stringify(queryKey);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [key],
  );
  const onChange = useCallback(() => {
    if (ended) return;
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: JSON.parse(key) as QueryKey });
    }, GAP);
  }, [client, ended, key]);
  useLiveChanges(onChange);
}
