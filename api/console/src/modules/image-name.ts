/** An image as people say it: the last part of its name with tag or beginning of the digest. */
export function shortImage(reference: string): string {
  const last = reference.slice(reference.lastIndexOf('/') + 1);
  return last.replace(/@sha256:([0-9a-f]{12})[0-9a-f]*$/, '@$1');
}

/** An image that was named by a tag of the repository, or by a reference, as people say it. */
export function saidImage(text: string, repository: string | undefined): string {
  return shortImage(fullReference(text, repository) ?? text);
}

/**
 * The full form of a reference, as the server writes it: `docker.io/library/busybox:latest` for `busybox:latest`.
 * A text without `/`, `:` and `@` is a tag of the repository; undefined while that is not known.
 */
export function fullReference(text: string, repository: string | undefined): string | undefined {
  const name = text.trim();
  if (!/[/:@]/.test(name)) return repository === undefined ? undefined : `${repository}:${name}`;
  const [first = '', ...rest] = name.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  let path = hasRegistry ? rest.join('/') : name;
  const registry = !hasRegistry || first === 'index.docker.io' ? 'docker.io' : first;
  if (registry === 'docker.io' && !path.includes('/')) path = `library/${path}`;
  return `${registry}/${path}${/[:@]/.test(path) ? '' : ':latest'}`;
}
