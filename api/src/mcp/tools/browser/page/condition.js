function* ({ text, textGone, selector, state: wanted }) {
  const said = text ?? textGone ? document.body?.innerText ?? '' : '';
  if (text !== undefined && !said.includes(text)) return false;
  if (textGone !== undefined && said.includes(textGone)) return false;
  if (selector === undefined) return true;
  const found = all(selector);
  if (wanted === 'attached') return found.length > 0;
  if (wanted === 'detached') return found.length === 0;
  for (const element of found) {
    if (yield) throw new Error('selector: too many elements match to look at all of them: cut at ' + visited + ' of ' + found.length + '; give a narrower one');
    if (visible(element)) return wanted !== 'hidden';
  }
  return wanted === 'hidden';
}
