import { Button, PasswordInput } from '@mantine/core';
import { type ReactNode, useId } from 'react';

import { useT } from '../../i18n';
import { TonePill } from '../StatusPill';
import type { FormField, SecretEntry } from './fields';
import styles from './form.module.css';

interface Props {
  field: FormField;
  entry: SecretEntry | undefined;
  error?: string;
  /** A stored one is replaced only. */
  isKept?: boolean;
  onChange: (entry: SecretEntry | undefined) => void;
}

/** A secret: set or not set, replaced or removed, never shown. */
export function SecretField({ field, entry, error, isKept = false, onChange }: Props): ReactNode {
  const t = useT();
  const id = useId();
  const { label, set } = field;
  const keep = (
    <Button size="compact-sm" variant="subtle" onClick={() => onChange(undefined)}>
      {t(set || entry === 'remove' ? 'form.secret.keep' : 'form.secret.cancel')}
    </Button>
  );
  if (entry !== undefined && entry !== 'remove') {
    return (
      <div className={styles.secret}>
        <PasswordInput
          label={label}
          description={field.description}
          classNames={{ description: styles.description }}
          required={field.required}
          withAsterisk={field.required}
          error={error}
          value={entry.replace}
          autoComplete="new-password"
          spellCheck={false}
          autoFocus
          visibilityToggleButtonProps={{ 'aria-label': t('form.secret.show') }}
          onChange={(event) => onChange({ replace: event.currentTarget.value })}
        />
        {keep}
      </div>
    );
  }
  return (
    <div role="group" aria-labelledby={id} className={styles.secret}>
      <div id={id} className={styles.label}>
        {label}
      </div>
      {field.description !== undefined && <small className={styles.description}>{field.description}</small>}
      <div className="row">
        {entry === 'remove' ? (
          <TonePill tone="warn">{t('form.secret.removed')}</TonePill>
        ) : (
          <TonePill tone={set ? 'ok' : 'off'}>{t(set ? 'form.secret.set' : 'form.secret.unset')}</TonePill>
        )}
        {entry === 'remove' && keep}
        {entry === undefined && (
          <Button size="compact-sm" onClick={() => onChange({ replace: '' })}>
            {t(set ? 'form.secret.replace' : 'form.secret.enter')}
          </Button>
        )}
        {entry === undefined && set && field.required !== true && !isKept && (
          <Button size="compact-sm" variant="subtle" color="bad" onClick={() => onChange('remove')}>
            {t('form.secret.remove')}
          </Button>
        )}
      </div>
      {error !== undefined && <small className={styles.error}>{error}</small>}
    </div>
  );
}
