import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { historyQuery } from '../../api/queries/config';
import { Actor } from '../../components/Actor';
import { Time } from '../../components/Time';
import { Rich } from '../../i18n';

/** Says who saved the settings last. */
export function LastChange(): ReactNode {
  const { data } = useQuery(historyQuery({ page: 1, page_size: 1 }));
  const [last] = data?.history ?? [];
  if (last === undefined) return null;
  const { revision, actor, at } = last;
  return (
    <Rich
      k="config.last"
      values={{
        revision: String(revision),
        actor: <Actor key="actor" name={actor} />,
        time: <Time key="time" at={at} />,
      }}
    />
  );
}
