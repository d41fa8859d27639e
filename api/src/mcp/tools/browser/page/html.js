({ selector, outer, from, most }) => {
  const element = selector ? one(selector) : document.documentElement;
  const html = outer === false ? element.innerHTML : element.outerHTML;
  // Both halves of a character are in the same part.
  const before = (at) => (/[\udc00-\udfff]/.test(html[at] ?? '') ? at - 1 : at);
  return { text: html.slice(before(from), before(from + most)), length: html.length };
}
