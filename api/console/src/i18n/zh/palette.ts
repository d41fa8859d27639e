/** Command palette. */
export const palette = {
  'palette.button': '搜索',
  'palette.key': 'Ctrl K',
  'palette.title': '前往',
  'palette.hint': '用户、组、镜像、技能、设置、页面',
  'palette.none': '没有符合的名称。',
  'palette.pages': '页面',
  'palette.users': '用户',
  'palette.groups': '组',
  'palette.images': '镜像',
  'palette.skills': '技能',
  'palette.settings': '设置',
} satisfies Record<keyof typeof import('../en/palette').palette, string>;
