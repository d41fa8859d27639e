import { MASK } from '../../modules/settings';

/** A changed leaf of a document. */
export interface LeafChange {
  /** JSON pointer. */
  path: string;
  /** undefined: there was none. */
  before: unknown;
  /** undefined: there is none any more. */
  after: unknown;
}

type Tree = Record<string, unknown>;

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;

/** Lists the leaves in which two documents differ; items of lists are compared by their places. */
export function leafChanges(before: unknown, after: unknown, path = ''): LeafChange[] {
  const present = [before, after].filter((value) => value !== undefined);
  const areTrees = present.every(isTree) && Array.isArray(before ?? after) === Array.isArray(after ?? before);
  const names = new Set(present.flatMap((value) => (isTree(value) ? Object.keys(value) : [])));
  if (!areTrees || names.size === 0) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
  }
  const child = (value: unknown, name: string): unknown => (isTree(value) ? value[name] : undefined);
  return [...names].flatMap((name) => {
    const step = name.replaceAll('~', '~0').replaceAll('/', '~1');
    return leafChanges(child(before, name), child(after, name), `${path}/${step}`);
  });
}

const SECRET_NAME = /pass|secret|token|key|auth|cookie|credential|hook|header|env|dsn|jwt|pin\b|otp/i;

/** Returns true for a leaf whose value is not shown: it replaces a secret, or its name says that it is one. */
export function isSecretLeaf({ path, before }: LeafChange): boolean {
  return (typeof before === 'string' && before.includes(MASK)) || SECRET_NAME.test(path);
}
