import type { MessageKey } from '../../i18n';
import { dashboard } from '../../i18n/en/dashboard';

/** The sentence of an action of the audit trail; an action without one stands for itself. */
export function changeText(action: string): MessageKey {
  const key = `change.${action}`;
  return key in dashboard ? (key as keyof typeof dashboard) : 'change.other';
}
