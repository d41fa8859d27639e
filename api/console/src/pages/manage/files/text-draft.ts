import { readDraft, storeDraft } from '../../../modules/drafts';

/** Unsaved text of a file, with the state of the file that it was made from. */
export interface TextDraft {
  etag: string;
  text: string;
}

/** Reads the unsaved text of a file. */
export function readTextDraft(path: string): TextDraft | undefined {
  return readDraft(`text ${path}`) as TextDraft | undefined;
}

/** Keeps the unsaved text of a file over a reload; nothing forgets it. */
export function storeTextDraft(path: string, draft: TextDraft | undefined): void {
  storeDraft(`text ${path}`, draft);
}
