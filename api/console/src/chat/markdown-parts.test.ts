import { expect, test } from 'vitest';

import { cutMarkdown, limitDepth, safeUrl } from './markdown-parts';

const paragraph = `${'word '.repeat(100)}\n\n`;

test('short text is one part', () => {
  expect(cutMarkdown('a\n\nb')).toEqual([{ text: 'a\n\nb', plain: false }]);
});

test('long text is cut between paragraphs and keeps all characters', () => {
  const text = paragraph.repeat(40);
  const parts = cutMarkdown(text);
  expect(parts.length).toBeGreaterThan(5);
  expect(parts.map((part) => part.text).join('')).toBe(text);
});

test('growing text keeps its first parts', () => {
  const before = cutMarkdown(paragraph.repeat(40));
  const after = cutMarkdown(paragraph.repeat(41));
  expect(after.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
});

test('code and lists are not cut', () => {
  const code = `\`\`\`\`js\n${'let a = 1;\n\n```\n\n'.repeat(400)}\`\`\`\`\n`;
  expect(cutMarkdown(`intro\n\n${code}`)).toHaveLength(1);
  expect(cutMarkdown('1. item\n\n'.repeat(800))).toHaveLength(1);
});

test.each([
  ['quotes', `${'> '.repeat(40)}x`],
  ['lists', `${'- '.repeat(40)}x`],
  ['cells', `${'|a'.repeat(59)}\n${'|-'.repeat(59)}\n${'|\n'.repeat(200)}`],
  ['pictures', `${'!['.repeat(900)}a${'](b)'.repeat(900)}`],
  ['emphasis', '*a '.repeat(4000)],
  ['comments', 'a <!--'.repeat(300)],
  ['lines', `> a\n${'b\n'.repeat(3000)}`],
  ['one long paragraph', 'word '.repeat(5000)],
])('%s beyond measure are plain', (_, text) => {
  expect(cutMarkdown(text)[0]?.plain).toBe(true);
});

test('long code is formatted, long text around it is not', () => {
  const code = `\`\`\`\n${'[a](b) | c *d*\n'.repeat(4000)}\`\`\`\n`;
  expect(cutMarkdown(code)).toEqual([{ text: code, plain: false }]);
  expect(cutMarkdown(`${code}${'word '.repeat(5000)}`).map(({ plain }) => plain)).toEqual([true]);
});

test('table of a usual size is formatted', () => {
  const table = `|a|b|c|d|\n|-|-|-|-|\n${'|1|2|3|4|\n'.repeat(300)}`;
  expect(cutMarkdown(table)[0]?.plain).toBe(false);
});

test('rules and underlines are formatted', () => {
  expect(cutMarkdown(`a\n${'-'.repeat(200)}\n\n${'* '.repeat(10)}`)[0]?.plain).toBe(false);
});

test.each(['javascript:alert(1)', ' javascript:x', 'data:text/html,x', '/api/logout', '#a', 'file:///x', ''])(
  'link %j leads nowhere',
  (url) => {
    expect(safeUrl(url)).toBeUndefined();
  },
);

test.each(['https://example.org/a?b#c', 'http://10.0.0.1', 'mailto:a@example.org'])(
  'link %s stays',
  (url) => {
    expect(safeUrl(url)).toBe(url);
  },
);

test('deep tree keeps its words', () => {
  let tree: object = { type: 'text', value: 'deep' };
  for (let at = 0; at < 5000; at += 1) tree = { type: 'emphasis', children: [tree] };
  limitDepth()(tree as { type: string });
  let depth = 0;
  let node = tree as { value?: string; children?: (typeof node)[] };
  while (node.children?.[0]) {
    node = node.children[0];
    depth += 1;
  }
  expect(depth).toBeLessThan(50);
  expect(node.value).toBe('deep');
});
