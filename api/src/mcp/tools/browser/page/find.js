function* ({ text, regex, role: wanted, limit }) {
  const wants = text?.toLowerCase();
  let pattern;
  if (regex !== undefined) {
    try { pattern = new RegExp(regex, 'i'); } catch { throw new Error('regex: not a regular expression'); }
  }
  const elements = [];
  let cut = null, more = false;
  const says = (said) => (wants === undefined || said.toLowerCase().includes(wants)) && (!pattern || pattern.test(said));
  const everything = document.querySelectorAll('body *');
  for (const element of everything) {
    if (yield) { cut = { at: visited, of: everything.length }; break; }
    // Forms may have fields with the names of what is read.
    try {
      if (UNREAD.test(element.tagName)) continue;
      const what = role(element);
      if (wanted !== undefined && what !== wanted) continue;
      if (wants !== undefined || pattern) {
        // Of elements in each other, the innermost.
        const own = squeeze([...element.childNodes].filter((it) => it.nodeType === 3).map((it) => it.data).join(' '), Infinity);
        if (!says(own) && !(says(name(element)) && !childSays(element, says))) continue;
      }
      if (!visible(element)) continue;
      if (elements.length >= limit) { more = true; break; }
      elements.push({ ref: ref(element), role: what ?? element.tagName.toLowerCase(), name: name(element), context: textOf(element, 200) });
    } catch {}
  }
  return { elements, cut, more };
}
