import { extensionOf } from './paths';

/** Pictures that are shown; as a picture, an SVG file runs no scripts. */
const TYPES: Record<string, string> = {
  avif: 'image/avif',
  bmp: 'image/bmp',
  gif: 'image/gif',
  ico: 'image/x-icon',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  png: 'image/png',
  svg: 'image/svg+xml',
  webp: 'image/webp',
};

/** Files that are known not to be text, so that their content need not be asked for. */
const BINARY = new Set(
  'pdf zip gz tgz bz2 xz 7z rar tar doc docx xls xlsx ppt pptx odt ods mp3 mp4 mov webm wav ogg exe so db sqlite'.split(
    ' ',
  ),
);

/** Returns true when a file is no text by its name. */
export function isBinary(name: string): boolean {
  return BINARY.has(extensionOf(name));
}

/** The media type of a picture by its name; nothing for other files. */
export function pictureType(name: string): string | undefined {
  return TYPES[extensionOf(name)];
}
