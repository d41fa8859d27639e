import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { DetailCard } from '../../components/DetailCard';
import { TonePill } from '../../components/StatusPill';
import { type MessageKey, useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { ProviderFields } from './ProviderFields';
import { TestConnection } from './TestConnection';

/** A way of signing in: what it can do, its settings, a test of its connection. */
export function ProviderCard({ provider }: { provider: Schemas['ProviderDetail'] }): ReactNode {
  const t = useT();
  const { name, active, display_name: title, fields, actions } = provider;
  const abilities: [boolean, MessageKey][] = [
    [provider.has_password, 'auth.can.password'],
    [provider.has_browser, 'auth.can.browser'],
    [provider.has_directory, 'auth.can.directory'],
  ];
  const test = actions.find((action) => action.name.startsWith('test-'));
  return (
    <DetailCard
      title={visibleText(title)}
      aside={<TonePill tone={active ? 'ok' : 'off'}>{t(active ? 'auth.active' : 'auth.inactive')}</TonePill>}
    >
      <p>
        {abilities
          .filter(([can]) => can)
          .map(([, text]) => t(text))
          .join(' ')}
      </p>
      {fields.length > 0 && <ProviderFields fields={fields} isOpen={active} />}
      {test && <TestConnection provider={name} />}
    </DetailCard>
  );
}
