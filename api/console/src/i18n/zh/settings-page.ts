/** Read-only list of the service's settings. */
export const settingsPage = {
  'settings.count': '共 {total} 项 · {changed} 项已更改',
  'settings.search': '标题、说明或键名',
  'settings.setting': '设置',
  'settings.value': '值',
  'settings.command': '命令',
  'settings.changed': '已更改',
  'settings.changed.from': '已更改；默认值：{value}',
  'settings.default': '默认',
  'settings.empty': '空',
  'settings.secret.none': '未设置',
  'settings.show': '显示',
} satisfies Record<keyof typeof import('../en/settings-page').settingsPage, string>;
