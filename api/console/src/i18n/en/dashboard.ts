/** Overview. */
export const dashboard = {
  'dashboard.ready': '{ready} of {total, plural, one {# agent is} other {# agents are}} ready',
  'dashboard.failing':
    '{count, plural, =0 {None needs attention} one {# needs attention} other {# need attention}}',
} as const;
