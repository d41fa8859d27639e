import { queryOptions } from '@tanstack/react-query';

import type { ChatOverview, Conversation } from '../../chat/protocol';
import { get } from '../client';
import { keys } from '../keys';

/** Name of a conversation that is begun with its first message. */
export const NEW_CONVERSATION = 'new';

/** State of my chat, and my conversations, newest used first. */
export const chatQuery = queryOptions({
  queryKey: keys.own('container', 'chat'),
  queryFn: ({ signal }) => get<ChatOverview>('/api/agent/chat', {}, { signal }),
});

/** Puts a conversation into the list: at its place, or in front when it is new or was used. */
export function putConversation(overview: ChatOverview, conversation: Conversation): ChatOverview {
  const { conversations } = overview;
  const others = conversations.filter(({ id }) => id !== conversation.id);
  const at = others.findIndex(({ last_used_at: used }) => used <= conversation.last_used_at);
  return { ...overview, conversations: others.toSpliced(at < 0 ? others.length : at, 0, conversation) };
}
