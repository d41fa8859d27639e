/** Page of a user whose first container starts. */
export const initializing = {
  'initializing.title': '正在准备你的智能体',
  'initializing.text': '准备就绪后，本页会自动继续。',
  'initializing.config': '写入文件',
  'initializing.image': '获取镜像',
  'initializing.start': '启动并等待就绪',
  'initializing.stuck': '目前无法自动继续。',
  'initializing.plan': '接下来的步骤',
} satisfies Record<keyof typeof import('../en/initializing').initializing, string>;
