import { NativeSelect, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';

import type { AgentModel } from '../../api/queries/model';
import type { Draft } from '../../components/form/fields';
import form from '../../components/form/form.module.css';
import { SecretField } from '../../components/form/SecretField';
import { useT } from '../../i18n';
import type { ModelDraft } from './model-draft';

interface Props {
  stored: AgentModel;
  draft: Draft;
  shown: ModelDraft;
  errors: Record<string, string | undefined>;
  disabled: boolean;
  onChange: (draft: Draft) => void;
}

const EXAMPLES = { address: 'http://10.0.0.5:8000/v1', model: 'gpt-5.4' };

/** Provider, address, key and model. */
export function ModelFields({ stored, draft, shown, errors, disabled, onChange }: Props): ReactNode {
  const t = useT();
  const { provider } = shown;
  const entry = (name: string): string | undefined => {
    const value = draft.entries[name];
    return typeof value === 'string' ? value : undefined;
  };
  const set = (name: string, value: string): void =>
    onChange({ ...draft, entries: { ...draft.entries, [name]: value } });
  // Another provider has other addresses, models and keys.
  const choose = (id: string): void => onChange({ entries: { provider: id }, secrets: {} });
  const choices = stored.providers.map(({ id, title }) => ({ value: id, label: title }));
  const none = provider === undefined ? [{ value: '', label: t('model.choose') }] : [];
  return (
    <fieldset className={form.fields} disabled={disabled}>
      <NativeSelect
        label={t('model.provider')}
        data={[...none, ...choices]}
        value={provider?.id ?? ''}
        error={errors.provider}
        required
        onChange={(event) => choose(event.currentTarget.value)}
      />
      {provider && (
        <>
          <TextInput
            label={t('model.address')}
            description={
              provider.address === null
                ? t('model.address.needed')
                : t('model.address.usual', { address: provider.address })
            }
            value={entry('address') ?? shown.address}
            error={errors.address}
            placeholder={provider.address ?? EXAMPLES.address}
            required={provider.address === null}
            autoComplete="off"
            spellCheck={false}
            inputMode="url"
            onChange={(event) => set('address', event.currentTarget.value)}
          />
          {provider.key !== 'none' && (
            <SecretField
              field={{
                key: 'key',
                label: t('model.key'),
                type: 'password',
                description:
                  stored.key_set && !shown.keepsKey
                    ? t('model.key.other')
                    : provider.key === 'optional'
                      ? t('model.key.optional')
                      : undefined,
                secret: true,
                required: provider.key === 'required',
                set: shown.keepsKey,
              }}
              // A key leaves with its provider or address, not alone.
              isKept
              entry={draft.secrets.key}
              error={errors.key}
              onChange={(key) => onChange({ ...draft, secrets: key === undefined ? {} : { key } })}
            />
          )}
          <TextInput
            label={t('model.model')}
            description={t('model.model.hint')}
            value={entry('model') ?? shown.model}
            error={errors.model}
            placeholder={EXAMPLES.model}
            required
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => set('model', event.currentTarget.value)}
          />
        </>
      )}
    </fieldset>
  );
}
