import { TextInput } from '@mantine/core';
import type { ReactNode } from 'react';

import { Rich, useT } from '../i18n';

interface Props {
  name: string;
  value: string;
  onChange: (value: string) => void;
  hintId: string;
  /** Loss that cannot be undone; without it, the account. */
  hint?: string;
}

/** Field for the name of what cannot be had back. */
export function TypedName({ name, value, onChange, hintId, hint }: Props): ReactNode {
  const t = useT();
  return (
    <TextInput
      label={<Rich k="preview.type" values={{ name: <code>{name}</code> }} />}
      description={<span id={hintId}>{hint ?? t('preview.irreversible')}</span>}
      value={value}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
