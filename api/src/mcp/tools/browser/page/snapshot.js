({ selector, interactiveOnly, depth, boxes }) => {
  const MOST = 200_000;
  const lines = [];
  let length = 0, more = false;
  const say = (level, line) => {
    if (length > MOST) { more = true; return; }
    const full = (interactiveOnly ? '' : '  '.repeat(level)) + '- ' + line;
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
  const walk = (node, level) => {
    if (more) return;
    if (node.nodeType === Node.TEXT_NODE) {
      const text = squeeze(node.data, 2000);
      if (text && !interactiveOnly) say(level, text);
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    if (/^(script|style|noscript|template|head|meta|link)$/i.test(node.tagName)) return;
    if (node.getAttribute('aria-hidden') === 'true') return;
    const style = getComputedStyle(node);
    if (style.display === 'none') return;
    const hidden = style.visibility === 'hidden';
    const what = hidden ? null : role(node) ?? (interactive(node) ? 'generic' : null);
    const acts = !hidden && interactive(node);
    const told = what && (!interactiveOnly || acts);
    if (told) say(level, line(node, what));
    const below = level + (told ? 1 : 0);
    if (depth !== undefined && below >= depth) return;
    // The name of these is all of their text.
    const whole = told && (acts && !['combobox', 'listbox'].includes(what) || what === 'heading') && node.querySelector(INTERACTIVE) === null;
    if (whole || ['SELECT', 'TEXTAREA', 'SVG', 'IFRAME'].includes(node.tagName.toUpperCase())) return;
    if (hidden && !node.children.length) return;
    for (const child of (node.shadowRoot ?? node).childNodes) {
      if (hidden && child.nodeType === Node.TEXT_NODE) continue;
      // A form whose fields have names of its own properties.
      try { walk(child, below); } catch { say(below, 'not readable'); }
    }
  };
  walk(root(selector), 0);
  return { url: location.href, title: document.title, outline: lines.join('\n'), more };
}
