import type { ReactNode } from 'react';

import { Failure } from '../api/failure';
import type { FormField } from '../components/form/fields';
import { FieldForm } from '../components/form/FieldForm';

const FIELDS: FormField[] = [
  { key: 'enabled', label: 'Enabled', type: 'boolean', set: true, value: true },
  { key: 'client_id', label: 'Client ID', type: 'text', required: true, set: true, value: 'me@example.org' },
  { key: 'client_secret', label: 'Client secret', type: 'password', secret: true, set: true },
  { key: 'token', label: 'Bot token', type: 'password', secret: true, set: false },
  {
    key: 'mode',
    label: 'Mode',
    type: 'select',
    options: ['stream', 'webhook'],
    default: 'stream',
    set: false,
  },
  {
    key: 'timeout',
    label: 'Timeout',
    type: 'integer',
    default: 30,
    set: false,
    description: 'Seconds until it gives up',
  },
  { key: 'allow', label: 'Allowed senders', type: 'string_list', set: true, value: ['alice', 'bob'] },
  { key: 'extra', label: 'Extra', type: 'json', set: true, value: { retries: 3 } },
];

/** A form made from a schema; saving is refused at two fields. */
export function FormSamples(): ReactNode {
  const refuse = (): Promise<void> => {
    const problems = [
      { key: 'client_id', message: 'must be an address' },
      { pointer: '/values/timeout', message: 'must be between 1 and 600' },
    ];
    return Promise.reject(new Failure(422, 'invalid_values', 'refused', undefined, { problems }));
  };
  return (
    <div className="card">
      <FieldForm name="sample" fields={FIELDS} onSave={refuse} />
    </div>
  );
}
