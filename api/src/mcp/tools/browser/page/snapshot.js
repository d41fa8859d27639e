function* ({ selector, interactiveOnly, depth, boxes }) {
  const MOST = 200_000;
  // Rows with these in them are no rows of short cells.
  const PARTS = 'table,ul,ol,dl,h1,h2,h3,h4,h5,h6,form,iframe,[role=row],[role=list],[role=heading]';
  const lines = [];
  let length = 0, more = false, cut = null;
  const say = (level, line) => {
    if (length > MOST) { more = true; return; }
    const full = (interactiveOnly ? '' : '  '.repeat(Math.min(level, 50))) + '- ' + line;
    length += full.length + 1;
    lines.push(full);
  };
  const line = (element, what) => {
    const mark = interactive(element) || ['heading', 'img', 'dialog'].includes(what) ? ref(element) : null;
    const parts = [what];
    const called = name(element);
    if (called) parts.push(JSON.stringify(called));
    if (what === 'heading') parts.push('level ' + (element.getAttribute('aria-level') ?? element.tagName[1]));
    if (mark) parts.push('[ref=' + mark + ']');
    parts.push(...state(element));
    if (boxes) {
      const box = element.getBoundingClientRect();
      parts.push('[box=' + [box.x, box.y, box.width, box.height].map(Math.round).join(',') + ']');
    }
    return parts.join(' ');
  };
  const inCell = (element) => {
    const what = role(element);
    if (interactive(element) || what === 'img') return line(element, what ?? 'generic');
  };
  const rest = [[root(selector), 0, false]];
  const walk = (node, level, veiled) => {
    if (node.nodeType === 3) {
      const text = interactiveOnly || veiled ? '' : squeeze(node.data, 2000);
      if (text) say(level, text);
      return;
    }
    if (node.nodeType !== 1) return;
    if (UNREAD.test(node.tagName)) return;
    if (node.getAttribute('aria-hidden') === 'true') return;
    const style = getComputedStyle(node);
    if (style.display === 'none') return;
    const hidden = style.visibility === 'hidden';
    const what = hidden ? null : role(node) ?? (interactive(node) ? 'generic' : null);
    const acts = !hidden && interactive(node);
    const told = what && (!interactiveOnly || acts);
    if (what === 'row' && told && !acts && !node.querySelector(PARTS) && node.getElementsByTagName('*').length <= 200) {
      const cells = [...node.children].filter((cell) => getComputedStyle(cell).display !== 'none');
      const said = cells.map((cell) => inCell(cell) ?? textOf(cell, 500, inCell));
      say(level, ['row', ...state(node)].join(' ') + ': ' + said.join(' | '));
      return;
    }
    if (told) say(level, line(node, what));
    const below = level + (told ? 1 : 0);
    if (depth !== undefined && below >= depth) return;
    // The name of these is all of their text.
    const whole = told && (acts && !['combobox', 'listbox'].includes(what) || what === 'heading') && node.querySelector(INTERACTIVE) === null;
    if (whole || ['SELECT', 'TEXTAREA', 'SVG', 'IFRAME'].includes(node.tagName.toUpperCase())) return;
    if (hidden && !node.children.length) return;
    const children = (node.shadowRoot ?? node).childNodes;
    for (let at = children.length - 1; at >= 0; at--) rest.push([children[at], below, hidden]);
  };
  while (rest.length && !more) {
    const [node, level, veiled] = rest.pop();
    if (yield) { cut = visited; break; }
    // A form whose fields have names of its own properties.
    try { walk(node, level, veiled); } catch { say(level, 'not readable'); }
  }
  return { url: location.href, title: document.title, outline: lines.join('\n'), more, cut };
}
