import type { MessageKey } from '../../i18n';

const CLIENTS: Record<string, MessageKey> = {
  web: 'sessions.web',
  extension: 'sessions.extension',
  desktop: 'sessions.desktop',
};

/** Program of a session in words; undefined for a program that stands for itself. */
export function clientKey(client: string): MessageKey | undefined {
  return CLIENTS[client];
}
