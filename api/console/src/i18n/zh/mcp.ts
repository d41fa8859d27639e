/** The agent's tools in other programs. */
export const mcp = {
  'mcp.title': '在其他程序中使用智能体的工具',
  'mcp.tools': '工具',
  'mcp.program': '程序',
  'mcp.file': '写入 {file}：',
  'mcp.remote': '适用于只能启动命令的程序：',
  'mcp.snippet': '{program} 的配置',
  'mcp.copy': '连同令牌复制',
  'mcp.copy.token': '只复制令牌',
  'mcp.show': '显示令牌',
  'mcp.hide': '隐藏令牌',
  'mcp.token.failed': '无法读取令牌。',
  'mcp.rotate': '更换令牌…',
  'mcp.rotate.title': '更换令牌？',
  'mcp.rotate.verb': '更换令牌',
  'mcp.rotate.revoked': '当前令牌立即失效。',
  'mcp.rotate.connections':
    '{count, plural, =0 {目前没有连接的浏览器或桌面。} other {# 个已连接的浏览器或桌面会被断开。}}',
  'mcp.rotate.agent': '智能体会带着新令牌重启。',
  'mcp.rotate.elsewhere': '其他程序需要换用新令牌。',
  'mcp.rotated': '令牌已更换，请把新令牌交给其他程序。',
} satisfies Record<keyof typeof import('../en/mcp').mcp, string>;
