import type { UserRow } from '../../api/queries/users';
import { shownState, type ShownState } from '../state';

/** The state of a user in the list: that of the worst part, with the progress that its condition tells. */
export function stateOfUser({ health, conditions, status }: UserRow): ShownState {
  if (status === 'deleting') return { tone: 'wait', label: 'state.deleting' };
  const { percent, waits_for } = conditions.find(({ reason }) => reason === health.reason) ?? {};
  return shownState({ ...health, percent, waits_for });
}

/** The tag of an image reference, or the reference where it has none. */
export function tagOf(reference: string): string {
  const last = reference.slice(reference.lastIndexOf('/') + 1);
  const at = last.indexOf('@');
  const colon = last.indexOf(':');
  if (colon >= 0 && (at < 0 || colon < at)) return last.slice(colon + 1, at < 0 ? undefined : at);
  return reference;
}
