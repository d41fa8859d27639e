/** A word for a command line: quoted where a shell would read it otherwise. */
export function plainWord(text: string): string {
  return /^[\w.@:/+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
