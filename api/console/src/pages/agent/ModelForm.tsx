import { Button } from '@mantine/core';
import { type FormEvent, type ReactNode, useState } from 'react';

import { Failure } from '../../api/failure';
import type { AgentModel, ModelForm as Form } from '../../api/queries/model';
import { ErrorState } from '../../components/ErrorState';
import { type FormField, refusals } from '../../components/form/fields';
import styles from '../../components/form/form.module.css';
import { useDraft } from '../../components/form/useDraft';
import { useT } from '../../i18n';
import { readModelDraft } from './model-draft';
import { ModelFields } from './ModelFields';
import { SaveModel } from './SaveModel';
import { TryResult } from './TryResult';
import { useModelActions } from './useModelActions';
import { Warnings } from './Warnings';

const FIELDS = ['provider', 'address', 'key', 'model'] as const;
const PLACES = FIELDS.map((key): FormField => ({ key, label: key, type: 'text', set: false }));

/** Form of the model: try it, then save it after a look at what that means. */
export function ModelForm({ stored }: { stored: AgentModel }): ReactNode {
  const t = useT();
  const { draft, change, discard } = useDraft('agent-model');
  const [checked, setChecked] = useState(false);
  const [saving, setSaving] = useState<Form>();
  const { tried, check, save } = useModelActions();
  const shown = readModelDraft(stored, draft);
  const thrown = check.error ?? tried.error;
  const failure = thrown ? Failure.from(thrown) : undefined;
  const refused: Record<string, string> = failure === undefined ? {} : refusals(failure, PLACES);
  if (failure?.code === 'key_required') refused.key = t('form.required');
  const errors = Object.fromEntries(
    FIELDS.map((name) => [name, checked && shown.missing.has(name) ? t('form.required') : refused[name]]),
  );
  const unplaced = failure !== undefined && !FIELDS.some((name) => refused[name] !== undefined);
  const isBusy = check.isPending || tried.isPending;
  const begin = (act: (form: Form) => void): void => {
    setChecked(true);
    check.reset();
    tried.reset();
    if (shown.missing.size === 0) act(shown.form);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    begin((form) => check.mutate(form, { onSuccess: () => setSaving(form) }));
  };
  return (
    <form className={styles.form} onSubmit={submit} noValidate autoComplete="off">
      <ModelFields
        stored={stored}
        draft={draft}
        shown={shown}
        errors={errors}
        disabled={isBusy}
        onChange={(next) => {
          change(next);
          check.reset();
          tried.reset();
        }}
      />
      {unplaced && (
        <ErrorState title={t(check.error ? 'model.save.failed' : 'model.try.failed')} failure={failure} />
      )}
      <div role="status" className="stack">
        {tried.data && <TryResult tried={tried.data} />}
        {tried.data && <Warnings title={t('model.unreached')} warnings={tried.data.warnings} />}
      </div>
      <div className="row">
        <Button disabled={isBusy} onClick={() => begin((form) => tried.mutate(form))}>
          {t(tried.isPending ? 'model.trying' : 'model.try')}
        </Button>
        <Button type="submit" variant="filled" disabled={isBusy || !shown.isDirty}>
          {t(check.isPending ? 'model.checking' : 'model.save')}
        </Button>
        {shown.isDirty && Object.keys(draft.entries).length > 0 && <small>{t('model.unsaved')}</small>}
      </div>
      {saving && check.data && (
        <SaveModel
          preview={check.data}
          onClose={() => setSaving(undefined)}
          onSave={async () => {
            await save(saving, check.data.generation);
            discard();
            setChecked(false);
          }}
        />
      )}
    </form>
  );
}
