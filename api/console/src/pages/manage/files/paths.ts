/** Puts a name behind a folder; the top folder is empty. */
export function joinPath(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

/** The folder that a path lies in. */
export function parentOf(path: string): string {
  const at = path.lastIndexOf('/');
  return at < 0 ? '' : path.slice(0, at);
}

/** The last part of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Extension of a name, in lower case; empty for a name that only begins with one. */
export function extensionOf(name: string): string {
  const at = name.lastIndexOf('.');
  return at <= 0 ? '' : name.slice(at + 1).toLowerCase();
}

/** Returns true when a file or folder may have this name. */
export function isName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\u0000]/.test(name) && byteLength(name) <= 255;
}

/** Folder of the workspace where deleted entries lie. */
const TRASH = '.trash';

/** Returns true for the trash and everything in it. */
export function isInTrash(path: string): boolean {
  return path === TRASH || path.startsWith(`${TRASH}/`);
}

/** A path without empty parts and `.`; nothing when it would leave the workspace. */
export function cleanPath(text: string): string | undefined {
  const parts = text.split('/').filter((part) => part !== '' && part !== '.');
  return parts.every(isName) ? parts.join('/') : undefined;
}

/** Name of a second copy of a file: `notes (2026-05-11 11.46.40).txt`. */
export function copyName(name: string, now: Date): string {
  const stamp = now.toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '.');
  const extension = extensionOf(name);
  const stem = extension === '' ? name : name.slice(0, -extension.length - 1);
  return `${stem} (${stamp})${extension === '' ? '' : name.slice(stem.length)}`;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
