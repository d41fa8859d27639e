import { useQuery } from '@tanstack/react-query';

import { groupsQuery, tagsQuery } from '../../api/queries/users';
import type { Filter } from '../../components/table/FilterChip';
import { useT } from '../../i18n';
import { useReasons } from '../../i18n/reasons';
import { MANUAL } from '../../modules/reasons';

/** Filters above the list of users; those without a choice are left out. */
export function useUserFilters(notReady: number | undefined): Filter[] {
  const t = useT();
  const explain = useReasons();
  const { data: groups } = useQuery(groupsQuery);
  const { data: tags } = useQuery(tagsQuery);
  const plain = (value: string): { value: string; text: string } => ({ value, text: value });
  const reasons = [...MANUAL].map((value) => ({ value, text: explain(value).title }));
  const label =
    notReady === undefined ? t('users.not.ready') : t('users.not.ready.count', { count: notReady });
  const filters: Filter[] = [
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
      name: 'disabled',
      label: t('users.disabled'),
      options: [{ value: 'true', text: t('users.disabled') }],
    },
  ];
  return filters.filter(({ options }) => options.length > 0);
}
