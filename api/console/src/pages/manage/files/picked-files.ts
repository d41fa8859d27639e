/** A file that was chosen or dropped, with its path below the folder that it goes to. */
export interface PickedFile {
  path: string;
  file: File;
}

/** Chosen or dropped files and folders, empty ones included. */
export interface Picked {
  files: PickedFile[];
  folders: string[];
}

/** Reads the files of an input, which may be those of a folder. */
export function pickedByInput(list: FileList): Picked {
  const files = [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  return { files, folders: [] };
}

/** Reads what was dropped, folders with everything in them. Has to be called while the event is handled. */
export function pickedByDrop(data: DataTransfer): Promise<Picked> {
  const picked: Picked = { files: [], folders: [] };
  const entries = [...data.items].map((item) => (item.kind === 'file' ? item.webkitGetAsEntry() : null));
  const plain = [...data.files];
  return (async () => {
    for (const entry of entries) if (entry) await readEntry(entry, '', picked);
    if (picked.files.length + picked.folders.length === 0) {
      picked.files.push(...plain.map((file) => ({ path: file.name, file })));
    }
    return picked;
  })();
}

async function readEntry(entry: FileSystemEntry, folder: string, picked: Picked): Promise<void> {
  const path = `${folder}${entry.name}`;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => {
      (entry as FileSystemFileEntry).file(resolve, reject);
    });
    picked.files.push({ path, file });
  } else if (entry.isDirectory) {
    picked.folders.push(path);
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      // A reader gives its entries in parts, the last of which is empty.
      const part = await new Promise<FileSystemEntry[]>((resolve, reject) => {
        reader.readEntries(resolve, reject);
      });
      if (part.length === 0) break;
      for (const child of part) await readEntry(child, `${path}/`, picked);
    }
  }
}
