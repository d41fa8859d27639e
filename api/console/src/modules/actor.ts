import type { T } from '../i18n';

/** An actor of the audit trail in words: accounts by their names, the admin socket as the command line. */
export function actorText(actor: string, t: T): string {
  if (/^(socket|local):\d+$/.test(actor)) return t('actor.command');
  if (actor.startsWith('system')) return t('actor.system');
  return actor === '-' || actor === '' ? '–' : actor;
}
