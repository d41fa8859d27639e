/** API tokens. */
export const apiTokens = {
  'tokens.title': 'API tokens',
  'tokens.text':
    'Programs use them in place of a sign-in. They belong to the installation, and stay when the administrator who created them is deleted.',
  'tokens.none': 'There are no API tokens',
  'tokens.create': 'Create API token',
  'tokens.create.failed': 'The API token was not created',
  'tokens.created': 'API token {name} is created',
  'tokens.once': 'The token is shown this once. Copy it before you close this.',
  'tokens.name.hint': '1 to 63 lower-case letters, digits and . _ -',
  'tokens.role': 'Role',
  'tokens.role.read': 'Read',
  'tokens.role.admin': 'Read and change',
  'tokens.validity': 'Valid for',
  'tokens.validity.hint': 'A duration such as 12h or 90d, at most 366d.',
  'tokens.expires': 'Expires',
  'tokens.expired': 'expired',
  'tokens.used': 'Last use',
  'tokens.creator': 'Created by',
  'tokens.revoke': 'Revoke',
  'tokens.revoke.title': 'Revoke the API token {name}?',
  'tokens.revoke.text':
    'Programs that use it are refused from now on, and what they have open ends within 15 seconds.',
  'tokens.revoked': 'API token {name} is revoked',
} as const;
