import { expect, test } from 'vitest';

import { renderInConsole } from '../../../testing/render';
import { Markdown } from './Markdown';

const render = (text: string): HTMLElement => renderInConsole(<Markdown text={text} />).container;

test('html is shown as text', () => {
  const shown = render('<script>alert(1)</script>\n\n<img src=x onerror=alert(1)> <b>bold</b>');
  expect(shown.querySelector('script, img, b')).toBeNull();
  expect(shown.textContent).toContain('<script>alert(1)</script>');
  expect(shown.textContent).toContain('<img src=x onerror=alert(1)>');
});

test('picture of elsewhere is a link', () => {
  const shown = render('![a cat](https://evil.example/cat.png) ![x](javascript:alert(1))');
  expect(shown.querySelector('img')).toBeNull();
  const links = [...shown.querySelectorAll('a')];
  expect(links.map((link) => [link.textContent, link.getAttribute('href')])).toEqual([
    ['Picture: a cat', 'https://evil.example/cat.png'],
  ]);
});

test('links open in another tab, other addresses are text', () => {
  const shown = render(
    '[ok](https://a.example) [js](javascript:x) [own](/api/logout) [note][^1]\n\n[^1]: foot',
  );
  const links = [...shown.querySelectorAll('a')];
  expect(links.map((link) => link.textContent)).toEqual(['ok']);
  expect(links[0]).toMatchObject({ target: '_blank', rel: 'noopener noreferrer' });
  expect(shown.textContent).toContain('js own');
});

test('code has a copy button and its language', () => {
  const shown = render('```js\nlet a = 1;\n```');
  expect(shown.querySelector('pre')?.textContent).toBe('let a = 1;\n');
  expect(shown.querySelector('button')?.textContent).toContain('Copy');
  expect(shown.querySelector('small')?.textContent).toBe('js');
});

test('text that cannot be formatted stays plain', () => {
  const shown = render(`${'> '.repeat(5000)}deep`);
  expect(shown.querySelector('blockquote')).toBeNull();
  expect(shown.textContent).toContain('deep');
});
