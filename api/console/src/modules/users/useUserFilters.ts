import { useQuery } from '@tanstack/react-query';

import { groupsQuery, tagsQuery } from '../../api/queries/users';
import type { Schemas } from '../../api/types';
import type { Filter } from '../../components/table/FilterChip';
import { type MessageKey, useT } from '../../i18n';
import { useReasons } from '../../i18n/reasons';
import { MANUAL } from '../reasons';
import type { USER_FILTERS } from './user-filters';

/** States of a container in one word, as the list can be limited to. */
const STATUSES: Record<Schemas['ContainerStatus'], MessageKey> = {
  running: 'status.running',
  starting: 'status.starting',
  stopped: 'state.stopped',
  stopping: 'status.stopping',
  failed: 'status.failed',
  unknown: 'state.unknown',
  deleting: 'state.deleting',
};

/** Name of a filter of the list of users. */
type FilterName = (typeof USER_FILTERS)[number];

/** The named filters above a list of users, in their order; those without a choice are left out. */
export function useUserFilters(names: readonly FilterName[], notReady: number | undefined): Filter[] {
  const t = useT();
  const explain = useReasons();
  const { data: groups } = useQuery(groupsQuery);
  const { data: tags } = useQuery(tagsQuery);
  const plain = (value: string): { value: string; text: string } => ({ value, text: value });
  const reasons = [...MANUAL].map((value) => ({ value, text: explain(value).title }));
  const label =
    notReady === undefined ? t('users.not.ready') : t('users.not.ready.count', { count: notReady });
  const all: (Filter & { name: FilterName })[] = [
    { name: 'not_ready', label, options: [{ value: 'true', text: label }] },
    {
      name: 'group',
      label: t('users.group'),
      options: (groups?.groups ?? []).map(({ name }) => plain(name)),
    },
    { name: 'image', label: t('users.image'), options: (tags?.tags ?? []).map(plain) },
    {
      name: 'source',
      label: t('users.source'),
      options: [
        { value: 'local', text: t('users.source.local') },
        { value: 'ldap', text: t('users.source.ldap') },
        { value: 'oidc', text: t('users.source.oidc') },
      ],
    },
    {
      name: 'reason',
      label: t('users.reason'),
      options: reasons.sort((a, b) => a.text.localeCompare(b.text)),
    },
    {
      name: 'status',
      label: t('users.state'),
      options: Object.entries(STATUSES).map(([value, key]) => ({ value, text: t(key) })),
    },
    {
      name: 'disabled',
      label: t('users.disabled'),
      options: [{ value: 'true', text: t('users.disabled') }],
    },
  ];
  return names.flatMap((name) => all.find((one) => one.name === name && one.options.length > 0) ?? []);
}
