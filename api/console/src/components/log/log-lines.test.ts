import { expect, test } from 'vitest';

import { cutAtFinds, findLines, readLog } from './log-lines';

test('lines have their time, and hidden characters are visible', () => {
  const [first, second] = readLog('2026-11-12T09:12:00.123456789Z a\u001b[31mb\u202ec\r\nplain\ttext\n');
  expect(first?.time?.toISOString()).toBe('2026-11-12T09:12:00.123Z');
  expect(first?.text).toBe('a\\u001b[31mb\\u202ec');
  expect(second).toEqual({ text: 'plain\ttext' });
});

test('words are found in any case and marked', () => {
  const lines = readLog('An Error\nfine\nerror error');
  expect(findLines(lines, 'error')).toEqual([0, 2]);
  expect(cutAtFinds('error, Error', 'ERROR')).toEqual(['', 'error', ', ', 'Error', '']);
});
