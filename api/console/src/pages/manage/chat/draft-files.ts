import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { sendFile } from '../files/send-file';
import { DraftFiles } from '../../../chat/attachments';
import { UPLOADS } from '../../../chat/upload-names';

const all = new Map<string, DraftFiles>();

/** The files of a conversation's next message; they go on while another conversation is shown. */
export function draftFilesOf(conversation: string): DraftFiles {
  let files = all.get(conversation);
  if (files === undefined) {
    files = new DraftFiles(`chat files ${conversation}`, { makeFolder, send: sendFile });
    all.set(conversation, files);
  }
  return files;
}

async function makeFolder(): Promise<void> {
  try {
    await post('/api/files/mkdir', { path: '', name: UPLOADS });
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.code !== 'already_exists') throw thrown;
  }
}

addEventListener('beforeunload', (event) => {
  const isSending = [...all.values()].some((files) => files.list().some(({ state }) => state === 'sending'));
  if (isSending) event.preventDefault();
});
