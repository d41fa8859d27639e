function* ({ selector, attributes, limit }) {
  const elements = [];
  const matched = all(selector);
  let cut = null;
  for (const element of matched.slice(0, limit)) {
    if (yield) { cut = { at: visited, of: Math.min(limit, matched.length) }; break; }
    // Forms may have fields with the names of what is read.
    try {
      elements.push({ ref: ref(element), text: textOf(element, 500),
        attributes: Object.fromEntries((attributes ?? []).map((name) => [name, element.getAttribute(name)])) });
    } catch { elements.push({ ref: null, text: 'not readable', attributes: {} }); }
  }
  return { elements, cut, more: matched.length > limit };
}
