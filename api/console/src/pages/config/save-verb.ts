import type { ConfigSaved } from '../../api/queries/config';
import type { T } from '../../i18n';

/** The verb of a save with what it concerns most: removed users, else restarted agents, else settings. */
export function saveVerb({ changed, purge, restarts }: ConfigSaved, t: T): string {
  if (purge && purge.users > 0) return t('config.save.purge', { count: purge.users });
  if (restarts > 0) return t('config.save.restart', { count: restarts });
  return t('config.save', { count: changed.length });
}

/** The same of a rollback. */
export function rollbackVerb(revision: number, { purge, restarts }: ConfigSaved, t: T): string {
  if (purge && purge.users > 0) return t('config.rollback.purge', { count: purge.users });
  if (restarts > 0) return t('config.rollback.restart', { count: restarts });
  return t('config.rollback.button', { revision: String(revision) });
}
