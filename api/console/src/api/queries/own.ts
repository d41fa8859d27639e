import { queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { Failure } from '../failure';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** Entries of lists that a user's page shows at once. */
const ALL = { page_size: 200 };

/** Progress of my agent's start. */
export const initStatusQuery = queryOptions({
  queryKey: keys.initStatus,
  queryFn: ({ signal }) => get<Schemas['InitStatus']>('/api/user/init-status', {}, { signal }),
});

/** State of my agent. */
export const ownAgentQuery = queryOptions({
  queryKey: keys.own('container', 'agent'),
  queryFn: ({ signal }) => get<Schemas['OwnContainer']>('/api/user/container', {}, { signal }),
});

/** The user's connected browsers and desktops. */
export const ownExecutorsQuery = queryOptions({
  queryKey: keys.own('executor', 'executors'),
  queryFn: ({ signal }) => get<Schemas['OwnExecutors']>('/api/user/executors', {}, { signal }),
});

/** Skills that the user gets. */
export const ownSkillsQuery = queryOptions({
  queryKey: keys.own('skill-set', 'skills'),
  queryFn: ({ signal }) => get<Schemas['OwnSkills']>('/api/user/skills', ALL, { signal }),
});

/** Sites whose cookies the agent has. */
export const ownCookiesQuery = queryOptions({
  queryKey: keys.own('agent-config', 'cookies'),
  queryFn: ({ signal }) => get<Schemas['CookieDomains']>('/api/user/cookies', ALL, { signal }),
});

/** Channels that the agent may use. */
export const channelsQuery = queryOptions({
  queryKey: keys.own('agent-config', 'channels'),
  queryFn: ({ signal }) => get<Schemas['AgentChannels']>('/api/agent/channels', {}, { signal }),
});

/** Fields of all channels with what is set. */
export const channelFieldsQuery = queryOptions({
  queryKey: keys.own('agent-config', 'fields'),
  queryFn: ({ signal }) => get<Schemas['AgentFields']>('/api/agent/config-fields', {}, { signal }),
});

/** The chat-app channel; null where the agent has none or it is not allowed. */
export const chatAppQuery = queryOptions({
  queryKey: keys.own('agent-config', 'chat-app'),
  queryFn: async ({ signal }) => {
    try {
      return await get<Schemas['ChatApp']>('/api/chatapp', {}, { signal });
    } catch (thrown) {
      const code = thrown instanceof Failure ? thrown.code : '';
      if (code === 'not_found' || code === 'channel_not_allowed') return null;
      throw thrown;
    }
  },
});

/** Sessions of the account. */
export const ownSessionsQuery = queryOptions({
  queryKey: keys.own('session', 'sessions'),
  queryFn: ({ signal }) => get<Schemas['Sessions']>('/api/user/sessions', ALL, { signal }),
  staleTime: 0,
});
