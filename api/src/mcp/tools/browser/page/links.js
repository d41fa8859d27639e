function* ({ selector, contains, limit }) {
  const links = [];
  let total = 0;
  for (const a of root(selector).querySelectorAll('a[href]')) {
    // Those that were not looked at are more links.
    if (yield) { total += 1; break; }
    try {
      const text = textOf(a, 1000), href = String(a.href?.baseVal ?? a.href);
      if (contains !== undefined && !text.includes(contains) && !href.includes(contains)) continue;
      total += 1;
      if (links.length < limit) links.push({ text, href, title: a.title || undefined, target: a.target?.baseVal === undefined ? a.target || undefined : undefined });
    } catch {}
  }
  return { links, total };
}
