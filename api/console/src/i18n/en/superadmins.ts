/** Administrators. */
export const superadmins = {
  'superadmins.count': '{count, plural, one {# administrator} other {# administrators}}',
  'superadmins.text':
    'Administrators may do everything here, have no agent, and sign in with a password of their own in every mode.',
  'superadmins.you': 'you',
  'superadmins.create': 'Create administrator',
  'superadmins.create.text':
    'The password is random and shown once. The administrator can change it after signing in.',
  'superadmins.create.failed': 'The administrator was not created',
  'superadmins.name.hint': '1 to 64 letters, digits and . _ @ + - ; no user may have the same name.',
  'superadmins.created': '{name} is created',
  'superadmins.once': 'The password of {name} is shown this once. Copy it before you close this.',
  'superadmins.own.reset': 'Change your own password on your page, with the present one.',
  'superadmins.own.delete': 'You cannot delete your own account; another administrator can.',
  'superadmins.reset.text':
    'A random password takes the place of the present one, and all sessions of the administrator end.',
  'superadmins.delete.text':
    'The sessions of {name} end now, and {name} cannot sign in any more. The audit trail keeps what {name} did.',
  'superadmins.deleted': '{name} is deleted',
  'superadmins.none': 'There is no administrator {name}',
  'superadmins.is.you': 'This is your account.',
  'superadmins.is.other': '{name} may do everything here.',
  'superadmins.audit': 'What {name} did',
  'superadmins.sessions.own': 'You are signed out everywhere, here as well, and have to sign in again.',
  'superadmins.sessions.other': 'The administrator has to sign in again everywhere.',
} as const;
