import { Autocomplete, MultiSelect, Radio } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useId } from 'react';

import { imagesQuery } from '../../../api/queries/images';
import { groupsQuery } from '../../../api/queries/users';
import { type MessageKey, useT } from '../../../i18n';
import styles from '../rollouts.module.css';
import type { PartProps } from './ImageFields';
import { type Whom, WHOM } from './plan';
import { UsersField } from './UsersField';

const TEXTS: Record<Whom, MessageKey> = {
  all: 'rollout.who.all',
  groups: 'rollout.who.groups',
  users: 'rollout.who.users',
  image: 'rollout.who.image',
};
const ALL_IMAGES = { all: true };

/** Whom the rollout is for: all users, members of groups, named users, or all users of an image. */
export function WhomFields({ plan, errorOf, onChange }: PartProps): ReactNode {
  const t = useT();
  const id = useId();
  const { data: groups } = useQuery({ ...groupsQuery, enabled: plan.who === 'groups' });
  const { data: images } = useQuery({ ...imagesQuery(ALL_IMAGES), enabled: plan.who === 'image' });
  const used = (images?.images ?? []).filter(({ user_count: count }) => count > 0);
  const common = {
    comboboxProps: { transitionProps: { duration: 100 } },
    maxDropdownHeight: 280,
    withScrollArea: false,
  };
  return (
    <section className={`card ${styles.part ?? ''}`} aria-labelledby={id}>
      <h2 id={id}>{t('rollout.part.who')}</h2>
      <Radio.Group
        aria-label={t('rollout.part.who')}
        value={plan.who}
        onChange={(who) => onChange({ who: who as Whom })}
      >
        <div className={styles.radios}>
          {WHOM.map((one) => (
            <Radio key={one} value={one} label={t(TEXTS[one])} size="xs" />
          ))}
        </div>
      </Radio.Group>
      {plan.who === 'groups' && (
        <MultiSelect
          {...common}
          label={t('users.groups')}
          description={t('rollout.groups.hint')}
          data={[...new Set([...(groups?.groups ?? []).map(({ name }) => name), ...plan.groups])]}
          value={plan.groups}
          error={errorOf('groups')}
          searchable
          nothingFoundMessage={t('table.no.match')}
          onChange={(names) => onChange({ groups: names })}
        />
      )}
      {plan.who === 'users' && (
        <UsersField
          names={plan.users}
          error={errorOf('users')}
          onChange={(names) => onChange({ users: names })}
        />
      )}
      {plan.who === 'image' && (
        <Autocomplete
          {...common}
          label={t('rollout.from.image')}
          description={t('rollout.from.hint')}
          data={used.flatMap(({ repo_tags: tags, id: short }) => tags[0] ?? short)}
          value={plan.from}
          error={errorOf('from')}
          spellCheck={false}
          autoComplete="off"
          onChange={(from) => onChange({ from })}
        />
      )}
    </section>
  );
}
