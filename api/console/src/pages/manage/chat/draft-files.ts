import { get, post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import type { Schemas } from '../../../api/types';
import { DraftFiles } from '../../../chat/attachments';
import { UPLOADS } from '../../../chat/upload-names';
import { sendFile } from '../files/send-file';

const all = new Map<string, DraftFiles>();

/** The files of a conversation's next message; they go on while another conversation is shown. */
export function draftFilesOf(conversation: string): DraftFiles {
  let files = all.get(conversation);
  if (files === undefined) {
    files = new DraftFiles(`chat files ${conversation}`, { prepare, send: sendFile });
    all.set(conversation, files);
  }
  return files;
}

let hasFolder = false;

/** Makes the folder of attached files where there is none, and reads its names that are like `name`. */
async function prepare(name: string): Promise<ReadonlySet<string>> {
  if (!hasFolder) {
    const top = await readNames('', UPLOADS);
    if (!top.has(UPLOADS)) await makeFolder();
    hasFolder = true;
  }
  const dot = name.lastIndexOf('.');
  try {
    return await readNames(UPLOADS, dot > 0 ? name.slice(0, dot) : name);
  } catch (thrown) {
    // It was deleted meanwhile.
    hasFolder = false;
    throw thrown;
  }
}

async function makeFolder(): Promise<void> {
  try {
    await post('/api/files/mkdir', { path: '', name: UPLOADS });
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.code !== 'already_exists') throw thrown;
  }
}

async function readNames(path: string, search: string): Promise<ReadonlySet<string>> {
  const { entries } = await get<Schemas['Files']>('/api/files', { path, search, page_size: 200 });
  return new Set(entries.map(({ name }) => name));
}

addEventListener('beforeunload', (event) => {
  const isSending = [...all.values()].some((files) => files.list().some(({ state }) => state === 'sending'));
  if (isSending) event.preventDefault();
});
