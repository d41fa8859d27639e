import type { QueryClient } from '@tanstack/react-query';

import { get, post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import type { Schemas } from '../../../api/types';
import { joinPath, nameOf, parentOf } from './paths';
import type { Picked } from './picked-files';
import { Questions } from './questions';
import { sendFile } from './send-file';
import { type PlannedFile, planUpload } from './upload-plan';
import { isOpen, UploadQueue } from './upload-queue';

/** Names in a folder are asked for in pages of this size, and no more pages than that. */
const NAMES = { page_size: 200 };
const MOST_PAGES = 10;

/** The queue of this tab. */
export const queue = new UploadQueue(sendFile);

/** Questions about files that are there already. */
export const questions = new Questions();

/** Uploads that are being prepared. */
let planned = 0;

/** Uploads into a folder: makes folders, asks once about files that are there, then sends. */
export async function upload(
  picked: Picked | Promise<Picked>,
  target: string,
  client: QueryClient,
): Promise<void> {
  planned += 1;
  try {
    await planAndSend(await picked, target, client);
  } finally {
    planned -= 1;
  }
}

async function planAndSend(picked: Picked, target: string, client: QueryClient): Promise<void> {
  const plan = planUpload(picked, target);
  const fresh = new Set<string>();
  for (const folder of plan.folders) if (await makeFolder(folder)) fresh.add(folder);
  if (plan.folders.length > 0) void client.invalidateQueries({ queryKey: ['files'] });
  const there = await findConflicts(plan.files, fresh);
  const answer = there.size === 0 ? 'replace' : await questions.ask([...there]);
  if (answer === 'cancel') return;
  const isThere = ({ folder, name }: PlannedFile): boolean => there.has(joinPath(folder, name));
  const files = answer === 'skip' ? plan.files.filter((file) => !isThere(file)) : plan.files;
  queue.add(files.map((file) => ({ planned: file, overwrite: isThere(file) })));
}

/** Makes a folder. Returns false when it is there already. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await post('/api/files/mkdir', { path: parentOf(path), name: nameOf(path) });
    return true;
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === 'already_exists') return false;
    throw thrown;
  }
}

async function findConflicts(files: PlannedFile[], fresh: ReadonlySet<string>): Promise<Set<string>> {
  const there = new Set<string>();
  for (const folder of new Set(files.map((file) => file.folder))) {
    if (fresh.has(folder)) continue;
    const names = await readNames(folder);
    for (const file of files) {
      if (file.folder === folder && names.has(file.name)) there.add(joinPath(folder, file.name));
    }
  }
  return there;
}

/** Reads the names in a folder; of a very large one only the first, so that others are refused when they are sent. */
async function readNames(path: string): Promise<Set<string>> {
  const names = new Set<string>();
  for (let page = 1; page <= MOST_PAGES; page += 1) {
    const folder = await get<Schemas['Files']>('/api/files', { path, page, ...NAMES });
    for (const { name } of folder.entries) names.add(name);
    if (page >= folder.total_pages) break;
  }
  return names;
}

addEventListener('beforeunload', (event) => {
  if (planned > 0 || queue.list().some(isOpen)) event.preventDefault();
});
