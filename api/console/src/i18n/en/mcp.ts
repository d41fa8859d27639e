/** The agent's tools in other programs. */
export const mcp = {
  'mcp.title': 'Use your agent’s tools elsewhere',
  'mcp.tools': 'Tools',
  'mcp.program': 'Program',
  'mcp.file': 'In {file}:',
  'mcp.remote': 'For programs that can only start a command:',
  'mcp.snippet': 'Snippet for {program}',
  'mcp.copy': 'Copy with token',
  'mcp.copy.token': 'Copy token only',
  'mcp.show': 'Show token',
  'mcp.hide': 'Hide token',
  'mcp.token.failed': 'The token could not be read.',
  'mcp.rotate': 'Rotate token…',
  'mcp.rotate.title': 'Rotate your token?',
  'mcp.rotate.verb': 'Rotate token',
  'mcp.rotate.revoked': 'The present token stops working at once.',
  'mcp.rotate.connections':
    '{count, plural, =0 {No browser or desktop is connected.} one {# connected browser or desktop is disconnected.} other {# connected browsers and desktops are disconnected.}}',
  'mcp.rotate.agent': 'Your agent restarts with the new token.',
  'mcp.rotate.elsewhere': 'Programs elsewhere have to be given the new one.',
  'mcp.rotated': 'Token rotated. Give the new one to your other programs.',
} as const;
