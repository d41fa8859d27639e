/** Desired or observed state of an object, as the service reports it. */
export type State = Readonly<Record<string, unknown>>;

/** A property of an object, desired and observed. */
export interface ComparedFact {
  name: string;
  desired: unknown;
  /** Undefined: it is not among what was observed. */
  observed: unknown;
  differs: boolean;
}

/** Observed properties that have another name than the desired ones. */
const NAMES: Readonly<Record<string, readonly string[]>> = { image: ['image_ref', 'reference'] };

/** Name under which a desired property was observed. */
function observedName(name: string, seen: State): string {
  return [name, ...(NAMES[name] ?? [])].find((other) => other in seen) ?? name;
}

const isNothing = (value: unknown): boolean => value === undefined || value === null;

/** Puts beside each desired property what was observed of it. */
export function compareFacts(
  desired: State | null | undefined,
  observed: State | null | undefined,
): ComparedFact[] {
  const seen = observed ?? {};
  return Object.entries(desired ?? {}).map(([name, wanted]) => {
    const found = seen[observedName(name, seen)];
    const differs =
      !isNothing(found) && !isNothing(wanted) && JSON.stringify(wanted) !== JSON.stringify(found);
    return { name, desired: wanted, observed: found, differs };
  });
}

/** Observed properties that no desired one stands beside. */
export function observedOnly(
  desired: State | null | undefined,
  observed: State | null | undefined,
): [name: string, value: unknown][] {
  const shown = new Set(Object.keys(desired ?? {}).map((name) => observedName(name, observed ?? {})));
  return Object.entries(observed ?? {}).filter(([name]) => !shown.has(name));
}
