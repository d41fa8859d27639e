import { expect, test, vi } from 'vitest';

import { Questions } from './questions';

test('second question waits until the first one is answered', async () => {
  const questions = new Questions();
  const listener = vi.fn();
  questions.subscribe(listener);
  const answers = [questions.ask(['a']), questions.ask(['b'])];
  expect(questions.first()?.paths).toEqual(['a']);
  questions.first()?.answer('skip');
  expect(questions.first()?.paths).toEqual(['b']);
  questions.first()?.answer('replace');
  expect(questions.first()).toBeUndefined();
  expect(await Promise.all(answers)).toEqual(['skip', 'replace']);
  expect(listener).toHaveBeenCalledTimes(4);
});
