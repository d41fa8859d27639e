import { expect, test } from 'vitest';

import { plot } from './load-plot';

const MINUTE = 60_000;

test('the newest point is at the right, the highest at the top', () => {
  const { line, area, peak } = plot([
    { at: 0, value: 1 },
    { at: MINUTE, value: 4 },
    { at: 2 * MINUTE, value: 2 },
  ]);
  expect(peak).toBe(4);
  expect(line).toBe('M290.0,41.8 L295.0,2.0 L300.0,28.5');
  expect(area).toBe('M290.0,56 L290.0,41.8 L295.0,2.0 L300.0,28.5 L300.0,56 Z');
});

test('a time without points is a gap', () => {
  const { line } = plot([
    { at: 0, value: 1 },
    { at: MINUTE, value: 1 },
    { at: 30 * MINUTE, value: 1 },
  ]);
  expect(line.match(/M/g)).toHaveLength(2);
});

test('nothing but zeros is a line at the bottom', () => {
  expect(plot([{ at: 0, value: 0 }]).line).toBe('M300.0,55.0');
  expect(plot([])).toEqual({ line: '', area: '', peak: 0 });
});
