/** Command palette. */
export const palette = {
  'palette.button': 'Search',
  'palette.key': 'Ctrl K',
  'palette.title': 'Go to',
  'palette.hint': 'Users, groups, images, skills, settings, pages',
  'palette.none': 'Nothing has this name.',
  'palette.pages': 'Page',
  'palette.users': 'User',
  'palette.groups': 'Group',
  'palette.images': 'Image',
  'palette.skills': 'Skill',
  'palette.settings': 'Setting',
} as const;
