({ text, textGone, selector, state: wanted }) => {
  const said = document.body?.innerText ?? '';
  if (text !== undefined && !said.includes(text)) return false;
  if (textGone !== undefined && said.includes(textGone)) return false;
  if (selector === undefined) return true;
  const found = all(selector);
  switch (wanted ?? 'visible') {
    case 'attached': return found.length > 0;
    case 'detached': return found.length === 0;
    case 'hidden': return !found.some(visible);
    default: return found.some(visible);
  }
}
