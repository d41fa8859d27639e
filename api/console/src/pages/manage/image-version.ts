/** The version in an image's reference: its tag, or the beginning of its digest; empty when it names none. */
export function imageVersion(reference: string): string {
  const [name = '', digest = ''] = reference.split('@');
  const tag = /:([^:/]+)$/.exec(name)?.[1];
  return tag ?? digest.replace(/^sha256:/, '').slice(0, 12);
}
