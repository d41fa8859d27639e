/** Page of a user whose first container starts. */
export const initializing = {
  'initializing.title': 'Your agent is being set up',
  'initializing.text': 'This page goes on by itself as soon as it is ready.',
  'initializing.config': 'Write its files',
  'initializing.image': 'Get its image',
  'initializing.start': 'Start it and wait until it is ready',
  'initializing.stuck': 'It does not go on by itself at the moment.',
  'initializing.plan': 'What is done next',
} as const;
