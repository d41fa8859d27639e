import { TagsInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { usersQuery } from '../../../api/queries/users';
import { useT } from '../../../i18n';

/** Users that are offered at a time. */
const OFFERED = 20;
const PAUSE = 250;

interface Props {
  names: string[];
  error?: string;
  onChange: (names: string[]) => void;
}

/** Names of users, found on the server while they are typed; a list can be pasted. */
export function UsersField({ names, error, onChange }: Props): ReactNode {
  const t = useT();
  const [text, setText] = useState('');
  const [asked] = useDebouncedValue(text.trim(), PAUSE);
  const { data } = useQuery(usersQuery({ name: asked, page: 1, page_size: OFFERED }));
  return (
    <TagsInput
      label={t('section.users')}
      description={t('rollout.users.hint')}
      data={(data?.users ?? []).map(({ username }) => username)}
      value={names}
      error={error}
      searchValue={text}
      splitChars={[',', ';', ' ', '\n', '\t']}
      acceptValueOnBlur
      spellCheck={false}
      autoComplete="off"
      maxDropdownHeight={280}
      withScrollArea={false}
      comboboxProps={{ transitionProps: { duration: 100 } }}
      onSearchChange={setText}
      onChange={(next) => onChange(next.map((name) => name.trim()).filter((name) => name !== ''))}
    />
  );
}
