({ selector, outer, from, most }) => {
  const element = selector ? one(selector) : document.documentElement;
  const html = outer === false ? element.innerHTML : element.outerHTML;
  return { text: html.slice(from, from + most), length: html.length };
}
