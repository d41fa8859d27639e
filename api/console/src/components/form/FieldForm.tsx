import { Button } from '@mantine/core';
import { type FormEvent, type ReactNode, useRef, useState } from 'react';

import { Failure } from '../../api/failure';
import { useT } from '../../i18n';
import { ErrorState } from '../ErrorState';
import { collectChanges, entryOf, type FormField, isDirty, isSecret, refusals } from './fields';
import styles from './form.module.css';
import { PlainField } from './PlainField';
import { SecretField } from './SecretField';
import { useDraft } from './useDraft';

interface Props {
  /** Name of the form, for its unsaved changes: one for each object and section. */
  name: string;
  fields: FormField[];
  /** Sends the changed values; `null` clears one. Refused values are shown at their fields. */
  onSave: (values: Record<string, unknown>) => Promise<void>;
  saveLabel?: string;
}

/** A form made from a schema. A refresh of `fields` never touches what was typed. */
export function FieldForm({ name, fields, onSave, saveLabel }: Props): ReactNode {
  const t = useT();
  const { draft, change, discard } = useDraft(name);
  const [failure, setFailure] = useState<Failure>();
  const [checked, setChecked] = useState(false);
  const [saving, setSaving] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const { values, problems } = collectChanges(fields, draft);
  const dirty = isDirty(fields, draft);
  const refused = failure === undefined ? {} : refusals(failure, fields);
  const errorOf = (key: string): string | undefined => {
    const problem = checked ? problems[key] : undefined;
    return problem === undefined ? refused[key] : t(problem);
  };
  const unplaced = failure !== undefined && Object.keys(refused).every((key) => key === '');
  const focusFirstError = (): void => {
    requestAnimationFrame(() =>
      form.current?.querySelector<HTMLElement>('[aria-invalid=true], [data-error]')?.focus(),
    );
  };
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setChecked(true);
    if (Object.keys(problems).length > 0 || saving) {
      focusFirstError();
      return;
    }
    const focused = document.activeElement;
    setSaving(true);
    setFailure(undefined);
    try {
      await onSave(values);
      discard();
      setChecked(false);
    } catch (thrown) {
      setFailure(Failure.from(thrown));
      focusFirstError();
    }
    setSaving(false);
    // What is disabled while it is saved loses the focus; where an error has not taken it, it comes back.
    requestAnimationFrame(() => {
      if (document.activeElement === document.body && focused instanceof HTMLElement) focused.focus();
    });
  };
  const reset = (): void => {
    discard();
    setFailure(undefined);
    setChecked(false);
  };
  return (
    <form
      ref={form}
      className={styles.form}
      onSubmit={(event) => void save(event)}
      noValidate
      autoComplete="off"
    >
      <fieldset className={styles.fields} disabled={saving}>
        {fields.map((field) =>
          isSecret(field) ? (
            <SecretField
              key={field.key}
              field={field}
              entry={draft.secrets[field.key]}
              error={errorOf(field.key)}
              onChange={(entry) => {
                const rest = Object.fromEntries(
                  Object.entries(draft.secrets).filter(([key]) => key !== field.key),
                );
                change({ ...draft, secrets: entry === undefined ? rest : { ...rest, [field.key]: entry } });
              }}
            />
          ) : (
            <PlainField
              key={field.key}
              field={field}
              entry={draft.entries[field.key] ?? entryOf(field)}
              error={errorOf(field.key)}
              onChange={(entry) => change({ ...draft, entries: { ...draft.entries, [field.key]: entry } })}
            />
          ),
        )}
      </fieldset>
      {unplaced && <ErrorState title={t('form.failed')} failure={failure} />}
      <div className="row">
        <Button type="submit" variant="filled" disabled={!dirty || saving}>
          {saving ? t('form.saving') : (saveLabel ?? t('form.save'))}
        </Button>
        {dirty && (
          <Button variant="subtle" onClick={reset} disabled={saving}>
            {t('form.reset')}
          </Button>
        )}
        <small role="status">
          {failure !== undefined && !unplaced
            ? t('form.refused', { count: Object.keys(refused).length })
            : dirty && t('form.unsaved')}
        </small>
      </div>
    </form>
  );
}
