/** Folder of the workspace that attached files go to. */
export const UPLOADS = 'uploads';

/** Most bytes of a name, with place for a number. */
const MOST = 240;

/** Name under which a file can be stored: of one line, without a slash, not too long. */
export function plainName(name: string): string {
  const plain = name.replace(/[/\\\u0000-\u001f\u007f]/g, '_').trim();
  const usual = plain === '' || plain === '.' || plain === '..' ? 'file' : plain;
  const dot = usual.lastIndexOf('.');
  const extension = dot > 0 && usual.length - dot <= 20 ? usual.slice(dot) : '';
  let stem = usual.slice(0, usual.length - extension.length);
  while (byteLength(stem + extension) > MOST) stem = stem.slice(0, -1);
  return stem + extension;
}

/** Name of the `at`th file of a name: `notes (2).txt`. */
export function numberedName(name: string, at: number): string {
  if (at === 1) return name;
  const dot = name.lastIndexOf('.');
  const stem = dot > 0 ? name.slice(0, dot) : name;
  return `${stem} (${at})${name.slice(stem.length)}`;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
