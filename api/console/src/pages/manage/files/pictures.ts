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

/** The media type of a picture by its name; nothing for other files. */
export function pictureType(name: string): string | undefined {
  return TYPES[extensionOf(name)];
}
