/** The path under which the console is served, without a slash at its end; mostly empty. */
export const prefix: string = readPrefix();

function readPrefix(): string {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="agentyard-prefix"]');
  const content = meta?.content ?? '';
  return content.startsWith('/') ? content.replace(/\/+$/, '') : '';
}

/** Puts the prefix before an own path. */
export function ownUrl(path: string): string {
  return `${prefix}${path}`;
}

/** Returns `next` when it is a path of this site, without the prefix; otherwise nothing. */
export function ownPath(next: string | null | undefined): string | undefined {
  // A backslash or a second slash would lead to another site, control characters are dropped by browsers.
  if (!next || !/^\/(?![/\\])/.test(next) || /[\u0000-\u001f\\]/.test(next)) return undefined;
  return next;
}
