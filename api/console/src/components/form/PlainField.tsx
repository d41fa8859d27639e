import { NativeSelect, Switch, Textarea, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import type { Entry, FormField } from './fields';
import styles from './form.module.css';

/** Rows up to which a field grows with its text. */
const MOST_ROWS = 20;

interface Props {
  field: FormField;
  entry: Entry;
  error?: string;
  onChange: (entry: Entry) => void;
}

/** A field whose value is shown. */
export function PlainField({ field, entry, error, onChange }: Props): ReactNode {
  const t = useT();
  const { label, required, type, options = [] } = field;
  const usual =
    field.default === undefined || field.default === null || field.default === '' ? '' : field.default;
  const usualText =
    typeof usual === 'boolean'
      ? t(usual ? 'form.on' : 'form.off')
      : typeof usual === 'string'
        ? usual
        : JSON.stringify(usual);
  const hints = [
    field.description ?? '',
    type === 'string_list' ? t('form.lines') : '',
    usual === '' ? '' : t('form.default', { value: usualText }),
  ].filter((hint) => hint !== '');
  const description = hints.length > 0 ? hints.join(' · ') : undefined;
  const classNames = { description: styles.description };
  const common = { label, description, error, required, withAsterisk: required, classNames };
  if (type === 'boolean') {
    return (
      <Switch
        label={label}
        description={description}
        classNames={classNames}
        error={error}
        checked={entry === true}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    );
  }
  const text = String(entry);
  const change = (event: { currentTarget: { value: string } }): void => onChange(event.currentTarget.value);
  if (type === 'select') {
    const data = options.includes(text) ? options : [text, ...options];
    return <NativeSelect {...common} data={data} value={text} onChange={change} />;
  }
  if (type === 'string_list' || type === 'json' || type === 'long_text') {
    const lines = text.split('\n').length;
    return (
      <Textarea
        {...common}
        classNames={{ ...classNames, input: styles.lines }}
        value={text}
        onChange={change}
        rows={Math.max(type === 'string_list' ? 2 : 4, Math.min(lines + 1, MOST_ROWS))}
        spellCheck={false}
        autoComplete="off"
      />
    );
  }
  return (
    <TextInput
      {...common}
      value={text}
      onChange={change}
      autoComplete="off"
      spellCheck={false}
      inputMode={type === 'text' ? 'text' : 'decimal'}
    />
  );
}
