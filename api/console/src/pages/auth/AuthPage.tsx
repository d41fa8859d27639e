import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { providersQuery } from '../../api/queries/auth';
import { CommandLine } from '../../components/CommandLine';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { useT } from '../../i18n';
import { DirectoryCard } from './DirectoryCard';
import { ProviderCard } from './ProviderCard';
import { Whitelist } from './Whitelist';

const SENTENCES = { local: 'auth.local', ldap: 'auth.ldap', oidc: 'auth.oidc' } as const;
const COMMANDS = [
  'agentyard auth test',
  'agentyard auth sync --dry-run',
  'agentyard auth sync',
  'agentyard auth whitelist --add USER',
  'agentyard auth switch MODE --plan',
];

/** Sign-in of users: the mode, its settings, the directory, the whitelist. */
export function AuthPage(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(providersQuery);
  if (error && !data) return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={6} />;
  const active = data.providers.find((provider) => provider.active);
  // The one in use comes first.
  const isLdap = active?.name === 'ldap';
  const providers = [...data.providers].sort((a, b) => Number(b.active) - Number(a.active));
  return (
    <div className="stack">
      <div>
        <h1>{t('section.auth')}</h1>
        {active && <small>{t(SENTENCES[active.name])}</small>}
      </div>
      {isLdap && <DirectoryCard isLdap />}
      {providers.map((provider) => (
        <ProviderCard key={provider.name} provider={provider} />
      ))}
      {!isLdap && <DirectoryCard isLdap={false} />}
      <Whitelist />
      <CommandLine commands={COMMANDS} />
    </div>
  );
}
