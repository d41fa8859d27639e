import { expect, test } from 'vitest';

import { explainFault } from './registry-fault';

test('refusals of a registry get different texts', () => {
  expect(explainFault('the registry r.example:5000 refuses to list the tags; check the name')).toEqual({
    title: 'registry.refused',
    help: 'registry.refused.help',
    registry: 'r.example:5000',
  });
  expect(explainFault("the registry docker.io can't be reached; check its name")?.title).toBe(
    'registry.away',
  );
  expect(explainFault('image is not a reference')).toBeUndefined();
});
