import type { AgentModel, ModelForm, ModelProvider } from '../../api/queries/model';
import type { Draft } from '../../components/form/fields';

/** The form of the model as it stands: what is stored, with what was typed. */
export interface ModelDraft {
  provider: ModelProvider | undefined;
  address: string;
  model: string;
  /** The stored key goes with this provider and address. */
  keepsKey: boolean;
  isDirty: boolean;
  /** Fields that lack a value. */
  missing: ReadonlySet<'provider' | 'address' | 'model' | 'key'>;
  form: ModelForm;
}

const textOf = (draft: Draft, name: string): string | undefined => {
  const entry = draft.entries[name];
  return typeof entry === 'string' ? entry : undefined;
};

/** Puts the stored choice and what was typed together. */
export function readModelDraft(stored: AgentModel, draft: Draft): ModelDraft {
  const id = textOf(draft, 'provider') ?? stored.provider ?? '';
  const provider = stored.providers.find((one) => one.id === id);
  const isStored = provider !== undefined && provider.id === stored.provider;
  const usual = provider?.address ?? '';
  const storedAddress = isStored && stored.address !== usual ? (stored.address ?? '') : '';
  const address = (textOf(draft, 'address') ?? storedAddress).trim();
  const model = (textOf(draft, 'model') ?? (isStored ? (stored.model ?? '') : '')).trim();
  const effective = address === '' ? usual : address;
  const keepsKey = isStored && stored.key_set && effective === stored.address;
  const secret = draft.secrets.key;
  const key = secret !== undefined && secret !== 'remove' ? secret.replace.trim() : '';
  const missing = new Set<'provider' | 'address' | 'model' | 'key'>();
  if (provider === undefined) missing.add('provider');
  if (provider !== undefined && effective === '') missing.add('address');
  if (model === '') missing.add('model');
  if (provider?.key === 'required' && key === '' && !keepsKey) missing.add('key');
  const form: ModelForm = { provider: id, model };
  if (address !== '') form.address = address;
  if (key !== '' && provider?.key !== 'none') form.key = key;
  const isSame = isStored && effective === stored.address && model === stored.model && key === '';
  return { provider, address, model, keepsKey, isDirty: !isSame, missing, form };
}
