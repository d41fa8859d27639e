import { joinPath, nameOf, parentOf } from './paths';
import type { Picked } from './picked-files';

/** The most that the server takes of one file. */
export const MOST_BYTES = 33_554_432;

/** A file with the folder it goes to. */
export interface PlannedFile {
  folder: string;
  name: string;
  file: File;
}

/** Steps of an upload: folders first, then files. */
export interface UploadPlan {
  /** Folders to be made, each after the one it lies in. */
  folders: string[];
  files: PlannedFile[];
}

/** Plans an upload into the folder `target`. */
export function planUpload(picked: Picked, target: string): UploadPlan {
  const folders = new Set<string>();
  const addFolder = (path: string): void => {
    if (path === '') return;
    addFolder(parentOf(path));
    folders.add(path);
  };
  for (const folder of picked.folders) addFolder(folder);
  for (const { path } of picked.files) addFolder(parentOf(path));
  return {
    folders: [...folders].map((folder) => joinPath(target, folder)),
    files: picked.files.map(({ path, file }) => ({
      folder: parentOf(joinPath(target, path)),
      name: nameOf(path),
      file,
    })),
  };
}
