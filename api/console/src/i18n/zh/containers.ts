/** List of agents. */
export const containers = {
  'status.running': '运行中',
  'status.starting': '启动中',
  'status.stopping': '停止中',
  'status.failed': '失败',
  'containers.since': '始于',
  'containers.count': '{total} 个智能体 · {bad} 个未就绪',
  'containers.none': '暂无智能体',
  'containers.none.text': '每个用户都有自己的智能体，请先创建用户。',
  'containers.none.users': '前往用户列表',
} satisfies Record<keyof typeof import('../en/containers').containers, string>;
