({ selector, contains, limit }) => {
  const links = [...root(selector).querySelectorAll('a[href]')].map((a) => ({
    text: squeeze(a.innerText ?? a.textContent, 1000), href: String(a.href?.baseVal ?? a.href), title: a.title || undefined, target: a.target?.baseVal === undefined ? a.target || undefined : undefined,
  }));
  const found = contains === undefined ? links : links.filter(({ text, href }) => text.includes(contains) || href.includes(contains));
  return { links: found.slice(0, limit), total: found.length };
}
