/** Overview. */
export const dashboard = {
  'dashboard.ready': '{total} 个智能体中有 {ready} 个就绪',
  'dashboard.failing': '{count, plural, =0 {没有需要处理的} other {# 个需要处理}}',
} satisfies Record<keyof typeof import('../en/dashboard').dashboard, string>;
