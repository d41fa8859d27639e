() => {
  // The browser shows a page of its own in place of one that it cannot reach.
  const failed = location.protocol === 'chrome-error:' || document.documentURI.startsWith('about:neterror');
  return { url: location.href, title: document.title, state: document.readyState, age: performance.now(),
    status: performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0,
    error: failed ? squeeze(document.querySelector('.error-code')?.textContent ?? document.body?.innerText, 200) : null };
}
