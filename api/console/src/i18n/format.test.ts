import { describe, expect, test } from 'vitest';

import { en } from './en';
import { formatParts } from './format';
import { byteSize, duration, relativeTime } from './values';
import { zh } from './zh';

const say = (message: string, values: Record<string, string | number>, language = 'en'): string =>
  formatParts(message, values, language).join('');

describe('messages', () => {
  test('plural takes the branch of the language', () => {
    const message = '{count, plural, =0 {no agent} one {# agent of {name}} other {# agents of {name}}}';
    expect(say(message, { count: 0 })).toBe('no agent');
    expect(say(message, { count: 1, name: 'bob' })).toBe('1 agent of bob');
    expect(say(message, { count: 1200, name: 'bob' })).toBe('1,200 agents of bob');
    expect(say('{count, plural, other {# 个}}', { count: 1 }, 'zh-CN')).toBe('1 个');
  });

  test('element stays an element', () => {
    const element = { type: 'b' };
    expect(formatParts('Delete {name}?', { name: element as unknown }, 'en')).toEqual([
      'Delete ',
      element,
      '?',
    ]);
  });

  test('all messages can be read in both languages', () => {
    for (const [messages, language] of [
      [en, 'en'],
      [zh, 'zh-CN'],
    ] as const) {
      for (const message of Object.values(messages)) {
        expect(say(message, { count: 2, seconds: 2, total: 2 }, language)).not.toMatch(/plural|\{\s*\w+\s*,/);
      }
    }
  });
});

describe('values', () => {
  const now = new Date('2026-11-12T10:00:00Z');

  test('ages are short', () => {
    expect(relativeTime(new Date('2026-11-12T09:57:00Z'), now, 'en')).toBe('3 min ago');
    expect(relativeTime(new Date('2026-11-12T10:00:42Z'), now, 'en')).toBe('in 42 s');
    expect(relativeTime(new Date('2026-11-10T09:00:00Z'), now, 'en')).toBe('2 days ago');
    expect(relativeTime(new Date('2026-11-12T09:57:00Z'), now, 'zh-CN')).toBe('3分钟前');
  });

  test('sizes and durations have at most two parts', () => {
    expect(byteSize(1_288_490_188, 'en')).toBe('1.2 GB');
    expect(byteSize(356_515_840, 'en')).toBe('340 MB');
    expect(byteSize(0, 'en')).toBe('0 B');
    expect(duration(3900, 'en')).toBe('1 h 5 min');
    expect(duration(42, 'zh-CN')).toBe('42 秒');
    expect(duration(0, 'en')).toBe('0 s');
  });
});
