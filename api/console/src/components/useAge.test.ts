import { renderHook } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';

import { useAge } from './useAge';

const NOW = new Date('2026-05-11T09:00:58Z');

afterEach(() => vi.useRealTimers());

test.each([
  ['2026-05-11T08:59:20Z', false, '1 min ago'],
  ['2026-05-11T09:00:10Z', false, '48 s ago'],
  ['2026-05-11T09:00:57Z', true, '1 s ago'],
  ['2026-05-11T09:02:00Z', true, 'now'],
  ['', true, ''],
])('age of %s', (at, past, expected) => {
  vi.useFakeTimers({ now: NOW });
  const { result } = renderHook(() => useAge(new Date(at), past));
  expect(result.current).toBe(expected);
});
