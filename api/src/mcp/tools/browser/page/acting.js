// What an action leads to is told a moment later: the next slice says it, unless the page is gone by then.
const acting = (act, clicks) => (given) => {
  const element = given.selector === undefined ? null : one(given.selector);
  const seen = document.visibilityState === 'visible';
  const dialogs = [], opened = [];
  let leaving = false;
  const leave = () => { leaving = true; };
  addEventListener('beforeunload', leave);
  // A dialog stops every script of its page until a person closes it. So these are answered as the call says, and named.
  const accepted = given.dialog === 'accept';
  const own = { alert: window.alert, confirm: window.confirm, prompt: window.prompt, open: window.open };
  const note = (type, message, answer) => { if (dialogs.length < 10) dialogs.push({ type, message: squeeze(String(message ?? ''), 500), answer }); };
  const mine = {
    alert: (message) => note('alert', message, 'closed'),
    confirm: (message) => { note('confirm', message, accepted ? 'accepted' : 'dismissed'); return accepted; },
    prompt: (message, usual) => {
      note('prompt', message, accepted ? 'accepted' : 'dismissed');
      return accepted ? String(given.promptText ?? usual ?? '') : null;
    },
    open: (...to) => {
      const tab = own.open.apply(window, to);
      if (opened.length < 10) opened.push(squeeze(String(to[0] ?? 'about:blank'), 500) + (tab ? '' : ' (the browser has blocked it)'));
      return tab;
    },
  };
  Object.assign(window, mine);
  const restore = () => {
    removeEventListener('beforeunload', leave);
    for (const [name, stand] of Object.entries(mine)) if (window[name] === stand) window[name] = own[name];
  };
  setTimeout(restore, 3000);
  const link = clicks && element?.closest?.('a[target][href]');
  if (link && !['', '_self', '_top', '_parent'].includes(link.target.toLowerCase())) opened.push(squeeze(link.href, 500));
  let done;
  try { done = act(given); } catch (error) { restore(); throw error; }
  return [done, () => {
    if (leaving) return { leaving };
    restore();
    const text = element?.isConnected && element.isContentEditable ? ['text ' + JSON.stringify(textOf(element, 200))] : [];
    const now = !element ? null : element.isConnected ? [...text, ...state(element)].join(', ') : 'no longer on the page';
    return { url: location.href, title: document.title, now, dialogs, opened, behind: seen && document.visibilityState === 'hidden' };
  }];
};
const driveActing = (run, given, token) => tell(() => {
  const [done, effect] = run(given);
  keep(token, () => tell(() => {
    const told = effect();
    if (!told.leaving) kept().delete(token);
    return { ok: told };
  }));
  return { ok: done, watched: true };
});
