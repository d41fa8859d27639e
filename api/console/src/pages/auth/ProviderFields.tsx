import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { authValuesQuery } from '../../api/queries/auth';
import type { Schemas } from '../../api/types';
import { FactList } from '../../components/FactList';
import { TonePill } from '../../components/StatusPill';
import { useT } from '../../i18n';
import { useSettingNames } from '../../i18n/settings';
import { FactValue } from '../../modules/objects/FactValue';
import styles from './auth.module.css';

interface Props {
  fields: Schemas['ProviderField'][];
  /** Shown from the first. */
  isOpen: boolean;
}

/** Settings of a way of signing in; of secrets only if they are set. */
export function ProviderFields({ fields, isOpen }: Props): ReactNode {
  const t = useT();
  const names = useSettingNames();
  const { data } = useQuery(authValuesQuery);
  const valueOf = (key: string): unknown => {
    const at = key.indexOf('.');
    return data?.[key.slice(0, at)]?.[key.slice(at + 1)];
  };
  const isSet = (key: string): boolean => ![undefined, null, ''].includes(valueOf(key) as undefined);
  const shown = ({ key, secret }: Schemas['ProviderField']): ReactNode => {
    if (secret || key.endsWith('ca_certificate')) {
      return (
        <TonePill tone={isSet(key) ? 'ok' : 'off'}>
          {t(isSet(key) ? 'form.secret.set' : 'form.secret.unset')}
        </TonePill>
      );
    }
    return <FactValue name={key} value={valueOf(key)} />;
  };
  return (
    <details open={isOpen} className={styles.fields}>
      <summary>{t('auth.settings', { count: fields.length })}</summary>
      <FactList facts={fields.map((field) => [names?.find(field.key)?.[0] ?? field.title, shown(field)])} />
      <small>{t('auth.settings.change')}</small>
    </details>
  );
}
