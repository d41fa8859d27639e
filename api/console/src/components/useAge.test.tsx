import type { ReactNode } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { renderInConsole } from '../testing/render';
import { useAge } from './useAge';

beforeEach(() => vi.useFakeTimers({ now: new Date('2026-05-11T09:00:58Z') }));
afterEach(() => vi.useRealTimers());

function Age({ at, past }: { at: string; past: boolean }): ReactNode {
  return <p>{useAge(new Date(at), past)}</p>;
}

test.each([
  ['2026-05-11T08:59:20Z', false, '1 min ago'],
  ['2026-05-11T09:00:10Z', false, '48 s ago'],
  ['2026-05-11T09:00:57Z', true, '1 s ago'],
  ['2026-05-11T09:02:00Z', true, 'now'],
  ['', true, ''],
])('age of %s', (at, past, expected) => {
  const { container } = renderInConsole(<Age at={at} past={past} />);
  expect(container.querySelector('p')?.textContent).toBe(expected);
});
