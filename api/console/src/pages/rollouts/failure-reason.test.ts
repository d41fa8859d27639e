import { expect, test } from 'vitest';

import { readFailure } from './failure-reason';

test('reason and end of the log are taken out of the sentence', () => {
  expect(readFailure('ReplacementFailed: the previous container runs; end of its log: a | b')).toEqual({
    reason: 'ReplacementFailed',
    text: 'the previous container runs',
  });
  expect(readFailure('not ready within 120 s: CrashLoop: ended 3 times')).toEqual({
    reason: 'CrashLoop',
    text: 'not ready within 120 s: ended 3 times',
  });
  expect(readFailure('the user is gone')).toEqual({ text: 'the user is gone' });
});
