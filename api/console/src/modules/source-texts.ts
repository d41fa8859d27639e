import type { Schemas } from '../api/types';
import type { MessageKey } from '../i18n';

/** Sources of accounts and groups in words. */
export const SOURCES: Readonly<Record<Schemas['AccountSource'], MessageKey>> = {
  local: 'users.source.local',
  ldap: 'users.source.ldap',
  oidc: 'users.source.oidc',
};
