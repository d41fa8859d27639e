import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import type { FormField } from '../../components/form/fields';
import { PlainField } from '../../components/form/PlainField';
import { SecretField } from '../../components/form/SecretField';
import { type T, useT } from '../../i18n';
import { useConfigForm } from './config-form';
import styles from './config.module.css';
import type { ShownSetting } from './filter-settings';
import { defaultEntry, fieldType, isSecretText, settingEntry } from './read-entry';
import { lineOf } from './value-line';

function hintsOf(setting: ShownSetting, t: T): string {
  const { text, format, minimum, maximum, mayHoldSecrets } = setting;
  const hints = [text];
  if (format === 'duration-text') hints.push(t('config.hint.duration'));
  if (minimum !== undefined && maximum !== undefined) {
    hints.push(t('config.hint.range', { from: minimum, to: maximum }));
  }
  if (mayHoldSecrets) hints.push(t('config.hint.masks'));
  return hints.join(' · ');
}

/** A setting: its field, its key, its default, and what can be done with its unsaved change. */
export function SettingField({ setting, isChosen }: { setting: ShownSetting; isChosen: boolean }): ReactNode {
  const t = useT();
  const { draft, pending, errors, change, changeSecret, drop } = useConfigForm();
  const { key, isDefault, isForeign, isAvailable, options } = setting;
  const isSecret = isSecretText(setting);
  const entry = draft.entries[key];
  const isDirty = pending.keys.includes(key);
  const isTouched = isDirty || entry !== undefined;
  const isReset = pending.changes.some((one) => one.setting.key === key && one.kind === 'reset');
  const error = errors[key];
  const field: FormField = {
    key,
    label: setting.title,
    description: hintsOf(setting, t),
    type: fieldType(setting),
    options,
    secret: isSecret,
    set: setting.value !== '',
  };
  return (
    <div
      id={key}
      tabIndex={-1}
      className={styles.field}
      lang={isForeign ? 'en' : undefined}
      data-chosen={isChosen || undefined}
      data-dirty={isDirty || undefined}
    >
      <fieldset className={styles.control} disabled={!isAvailable}>
        {isSecret ? (
          <SecretField
            field={field}
            entry={draft.secrets[key]}
            error={error}
            onChange={(next) => changeSecret(setting, next)}
          />
        ) : (
          <PlainField
            field={field}
            entry={entry === null ? defaultEntry(setting) : (entry ?? settingEntry(setting))}
            error={error}
            onChange={(next) => change(setting, next)}
          />
        )}
      </fieldset>
      <div className={styles.foot}>
        <code>{key}</code>
        {!isSecret && (
          <small>{t('form.default', { value: lineOf(setting.default, t) ?? t('config.value.empty') })}</small>
        )}
        {!isDefault && !isDirty && <small className={styles.mark}>{t('config.changed')}</small>}
        {isDirty && (
          <small className={styles.mark}>
            {isReset ? t('config.field.reset') : t('config.field.unsaved')}
            {!isSecret && lineOf(setting.value, t) !== undefined && (
              <> · {t('config.field.was', { value: lineOf(setting.value, t) ?? '' })}</>
            )}
          </small>
        )}
        {isTouched && !isSecret && (
          <Button size="compact-xs" variant="subtle" onClick={() => drop(key)}>
            {t('config.field.undo')}
          </Button>
        )}
        {!isDefault && !isReset && !isSecret && isAvailable && (
          <Button size="compact-xs" variant="subtle" onClick={() => change(setting, null)}>
            {t('config.field.default')}
          </Button>
        )}
        {!isAvailable && <small>{t('config.field.unavailable')}</small>}
      </div>
    </div>
  );
}
