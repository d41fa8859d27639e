import { useQuery } from '@tanstack/react-query';

import { localTagsQuery, registryQuery } from '../../api/queries/images';

/** Tags of the registry that are offered. */
const MOST = 100;

/** Tags of the configured repository that users can get. */
export interface ImageChoices {
  repository: string | undefined;
  /** Tags on the engine, newest first. */
  engine: string[];
  /** Newest tags that only the registry has; none while it cannot be read. */
  registry: string[];
  isPending: boolean;
}

/** Reads which tags can be chosen. */
export function useImageChoices(): ImageChoices {
  const { data: local, isPending } = useQuery(localTagsQuery);
  const { data: remote } = useQuery(registryQuery({ page: 1, page_size: MOST }));
  const engine = local?.tags ?? [];
  const there = new Set(engine);
  return {
    repository: local?.repository ?? remote?.repository,
    engine,
    registry: (remote?.tags ?? []).filter((tag) => !there.has(tag)),
    isPending,
  };
}
