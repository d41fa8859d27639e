/** Themes of the console. */
export type Scheme = 'light' | 'dark';

const STORED = 'agentyard-scheme';
const ATTRIBUTE = 'data-mantine-color-scheme';
const listeners = new Set<() => void>();

const system = (): Scheme => (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');

/** The theme that the page shows. */
export function pageScheme(): Scheme {
  return document.documentElement.getAttribute(ATTRIBUTE) === 'dark' ? 'dark' : 'light';
}

/** The theme that was chosen; nothing when the system decides. */
export function storedScheme(): Scheme | undefined {
  try {
    const stored = localStorage.getItem(STORED);
    return stored === 'light' || stored === 'dark' ? stored : undefined;
  } catch {
    return undefined;
  }
}

/** Shows a theme and keeps the choice; nothing follows the system. */
export function storeScheme(scheme: Scheme | undefined): void {
  try {
    if (scheme === undefined) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, scheme);
  } catch {
    // Storage may be switched off: then the choice holds for this page.
  }
  document.documentElement.setAttribute(ATTRIBUTE, scheme ?? system());
  for (const listener of listeners) listener();
}

/** Calls `listener` whenever the shown theme changes. */
export function onSchemeChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Follows the system as long as no theme was chosen. */
export function followSystem(): void {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    if (storedScheme() === undefined) storeScheme(undefined);
  });
}
