/** Unsaved text of a file, with the state of the file that it was made from. */
export interface TextDraft {
  etag: string;
  text: string;
}

const keyOf = (path: string): string => `agentyard-text-${path}`;

/** Reads the unsaved text of a file. */
export function readTextDraft(path: string): TextDraft | undefined {
  try {
    const stored = sessionStorage.getItem(keyOf(path));
    return stored === null ? undefined : (JSON.parse(stored) as TextDraft);
  } catch {
    return undefined;
  }
}

/** Keeps the unsaved text of a file over a reload; nothing forgets it. */
export function storeTextDraft(path: string, draft: TextDraft | undefined): void {
  try {
    if (draft === undefined) sessionStorage.removeItem(keyOf(path));
    else sessionStorage.setItem(keyOf(path), JSON.stringify(draft));
  } catch {
    // Storage may be full or switched off: then a reload loses the text.
  }
}
