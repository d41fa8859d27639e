({ by }) => {
  // Each entry of the history has a key of its own; where there is none, an address in a document.
  const at = [globalThis.navigation?.currentEntry?.key ?? '', location.href, performance.timeOrigin].join(' ');
  if (by) {
    if (by < 0 && history.length <= 1) throw new Error('the tab has no page before this one');
    setTimeout(() => history.go(by));
  }
  return { at, ready: document.readyState === 'complete' };
}
