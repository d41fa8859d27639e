import type { Schemas } from '../../../api/types';
import type { FormField } from '../../../components/form/fields';

type FieldState = Schemas['AgentFieldState'];

/** The fields of a channel as fields of a form. */
export function formFields(fields: FieldState[], section: string): FormField[] {
  return fields
    .filter((state) => state.section === section)
    .map(({ field, set, value }) => ({
      key: field.key,
      label: field.label,
      type: field.type as FormField['type'],
      options: field.options,
      secret: field.secret,
      required: field.required,
      default: field.default,
      set,
      value,
    }));
}

/** Labels of the fields that a channel needs and that are not set. */
export function missingFields(fields: FormField[]): string[] {
  return fields
    .filter((field) => field.required === true && !field.set && field.default === undefined)
    .map(({ label }) => label);
}

/** The first setting that tells whose channel it is, such as a client ID; never a secret. */
export function tellingField(fields: FormField[]): { label: string; value: string } | undefined {
  const found = fields.find(
    ({ type, value, secret }) =>
      type === 'text' && secret !== true && typeof value === 'string' && value !== '',
  );
  return found && { label: found.label, value: String(found.value) };
}

/**
 * The channel behind the short chat-app form: the only one with a client ID and a client secret. Nothing when
 * several could be meant.
 */
export function chatAppSection(fields: FieldState[]): string | undefined {
  const has = (section: string, key: string): boolean =>
    fields.some((state) => state.section === section && state.field.key === key);
  const sections = [...new Set(fields.map(({ section }) => section))];
  const fitting = sections.filter((one) => has(one, 'client_id') && has(one, 'client_secret'));
  return fitting.length === 1 ? fitting[0] : undefined;
}
