import { useEffect, useState, useSyncExternalStore } from 'react';

import type { Conversation } from './protocol';
import { type ChatSnapshot, ChatSession } from './session';

/** An open conversation with what it shows. */
export interface Chat {
  session: ChatSession;
  snapshot: ChatSnapshot;
}

/** Opens a conversation as long as the component is there; another id needs another `key`. */
export function useChat(id: string, onConversation: (conversation: Conversation) => void): Chat {
  const [session] = useState(() => new ChatSession(id, { onConversation }));
  const snapshot = useSyncExternalStore(session.subscribe, session.snapshot);
  useEffect(() => {
    session.start();
    return () => session.close();
  }, [session]);
  return { session, snapshot };
}
