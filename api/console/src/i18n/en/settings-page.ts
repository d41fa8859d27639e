/** Read-only list of the service's settings. */
export const settingsPage = {
  'settings.count': '{total} in all · {changed} changed',
  'settings.search': 'Title, text or key',
  'settings.setting': 'Setting',
  'settings.value': 'Value',
  'settings.command': 'Command',
  'settings.changed': 'Changed',
  'settings.changed.from': 'Changed; default: {value}',
  'settings.default': 'Default',
  'settings.empty': 'empty',
  'settings.secret.none': 'not set',
  'settings.show': 'Show',
} as const;
