import { expect, test } from 'vitest';

import { fullReference, shortImage } from './image-name';

test('full references are those of the server', () => {
  for (const [text, full] of [
    ['2', 'docker.io/library/echo:2'],
    ['echo:2', 'docker.io/library/echo:2'],
    ['sipeed/picoclaw', 'docker.io/sipeed/picoclaw:latest'],
    ['localhost:5000/agent', 'localhost:5000/agent:latest'],
    ['registry.example/a/b:v1', 'registry.example/a/b:v1'],
    ['index.docker.io/busybox:1', 'docker.io/library/busybox:1'],
    ['r.example/a@sha256:abc', 'r.example/a@sha256:abc'],
  ])
    expect(fullReference(text ?? '', 'docker.io/library/echo')).toBe(full);
  expect(fullReference('2', undefined)).toBeUndefined();
});

test('short name keeps the tag and the beginning of a digest', () => {
  expect(shortImage('registry.example:5000/team/echo:2')).toBe('echo:2');
  expect(shortImage(`docker.io/library/echo@sha256:${'ab'.repeat(32)}`)).toBe('echo@abababababab');
});
