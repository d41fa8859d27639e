import { shownAccount } from '../api/account';

const PREFIX = 'agentyard-draft';

const ofAccount = (): string => `${PREFIX} ${shownAccount() ?? ''} `;

/** Reads what the account left unsaved in this tab. */
export function readDraft(name: string): unknown {
  try {
    const stored = sessionStorage.getItem(ofAccount() + name);
    return stored === null ? undefined : JSON.parse(stored);
  } catch {
    return undefined;
  }
}

/** Keeps what is unsaved over a reload, for this account only; nothing forgets it. Never for secrets. */
export function storeDraft(name: string, value: unknown): void {
  try {
    if (value === undefined) sessionStorage.removeItem(ofAccount() + name);
    else sessionStorage.setItem(ofAccount() + name, JSON.stringify(value));
  } catch {
    // Storage may be full or switched off: then a reload loses it.
  }
}

/** Forgets everything that the account left unsaved in this tab. */
export function forgetDrafts(): void {
  try {
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith(ofAccount())) sessionStorage.removeItem(key);
    }
  } catch {
    // Storage that is switched off keeps nothing.
  }
}
