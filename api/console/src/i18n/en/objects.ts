/** Read-only lists of objects. */
export const objects = {
  'objects.name': 'Name',
  'objects.state': 'State',
  'objects.why': 'Why',
  'objects.created': 'Created',
  'objects.not.ready': 'Not ready',
  'objects.count': '{total, plural, one {# object} other {# objects}} · {bad} not ready',
  'objects.none': 'Nothing here yet',
  'objects.none.text': 'Objects of this kind are made by the commands below.',
} as const;
