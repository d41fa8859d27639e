import type { Schemas } from '../../api/types';
import type { MessageKey } from '../../i18n';

/** Names of the roles of API tokens. */
export const ROLE_LABELS: Record<Schemas['ApiTokenRole'], MessageKey> = {
  read: 'tokens.role.read',
  admin: 'tokens.role.admin',
};
