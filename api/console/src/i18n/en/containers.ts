/** List of agents. */
export const containers = {
  'status.running': 'Running',
  'status.starting': 'Starting',
  'status.stopping': 'Stopping',
  'status.failed': 'Failed',
  'containers.since': 'Since',
  'containers.count': '{total, plural, one {# agent} other {# agents}} · {bad} not ready',
  'containers.none': 'No agents yet',
  'containers.none.text': 'Each user has an agent of their own. Create a user first.',
  'containers.none.users': 'Go to the users',
} as const;
