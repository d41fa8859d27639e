import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../../api/client';
import { keys } from '../../../api/keys';
import type { FormField } from '../../../components/form/fields';
import { FieldForm } from '../../../components/form/FieldForm';
import { LoadingState } from '../../../components/LoadingState';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import { useUserDetail } from '../useUserDetail';
import styles from '../users.module.css';
import { useUserName } from '../useUserName';

/** Limits of a user's container. */
export function LimitsTab(): ReactNode {
  const t = useT();
  const name = useUserName();
  const toasts = useToasts();
  const client = useQueryClient();
  const { desired } = useUserDetail(name);
  if (desired === undefined) return <LoadingState rows={3} />;
  const own = { memory_limit_mb: desired.memory_limit_mb, cpu_limit: desired.cpu_limit };
  const fields: FormField[] = [
    {
      key: 'memory_limit_mb',
      label: t('limits.memory'),
      description: t('limits.hint'),
      type: 'integer',
      set: true,
      value: own.memory_limit_mb,
    },
    {
      key: 'cpu_limit',
      label: t('limits.cpu'),
      description: t('limits.hint'),
      type: 'number',
      set: true,
      value: own.cpu_limit,
    },
  ];
  const save = async (changed: Record<string, unknown>): Promise<void> => {
    // Both are sent: one that is absent returns to the configured default, as an emptied field means.
    const limits = Object.entries({ ...own, ...changed }).filter(([, value]) => value !== null);
    await post('/api/admin/container/limits', { username: name, ...Object.fromEntries(limits) });
    toasts.done(t('limits.saved', { name }));
    await client.invalidateQueries({ queryKey: keys.object('container', name) });
  };
  return (
    <div className="card">
      <p className={`dim ${styles.lead ?? ''}`}>{t('limits.text')}</p>
      <FieldForm
        key={name}
        name={`limits-${name}`}
        fields={fields}
        onSave={save}
        saveLabel={t('limits.save')}
      />
    </div>
  );
}
