({ text, regex, role: wanted, limit }) => {
  const wants = text?.toLowerCase();
  let pattern;
  if (regex !== undefined) {
    try { pattern = new RegExp(regex, 'i'); } catch { throw new Error('regex: not a regular expression'); }
  }
  const found = [];
  const says = (said) => (wants === undefined || said.toLowerCase().includes(wants)) && (!pattern || pattern.test(said));
  for (const element of all('body *')) {
    if (found.length >= limit) break;
    if (/^(script|style|noscript|template)$/i.test(element.tagName)) continue;
    const what = role(element);
    if (wanted !== undefined && what !== wanted) continue;
    if (wants !== undefined || pattern) {
      // Of elements in each other, the innermost.
      const own = [...element.childNodes].filter((it) => it.nodeType === Node.TEXT_NODE).map((it) => it.data).join(' ');
      const called = name(element);
      const inner = (said) => says(said) && ![...element.children].some((child) => says(squeeze(child.textContent, 2000)));
      if (!says(own) && !inner(called)) continue;
    }
    if (!visible(element)) continue;
    found.push({ ref: ref(element), role: what ?? element.tagName.toLowerCase(), name: name(element),
      context: squeeze(element.innerText ?? element.textContent, 200) });
  }
  return found;
}
