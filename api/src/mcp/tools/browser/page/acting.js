// The effect of an action shows a moment later: the next slice reports it, unless the page is gone by then.
const DIALOGS = Symbol.for('agentyard.dialogs');
// A dialog stops every script of its page until a person closes it. So these are answered as the call says until its effect is read, and named.
const answerDialogs = ({ dialog, promptText }) => {
  const at = globalThis[DIALOGS] ??= { said: [], opened: [] };
  Object.assign(at, { accepted: dialog === 'accept', promptText });
  clearTimeout(at.timer);
  at.restore = () => {
    clearTimeout(at.timer);
    // Pages may have made them read-only.
    for (const [name, stand] of Object.entries(at.stands ?? {})) try { if (window[name] === stand) window[name] = at.own[name]; } catch {}
    at.stands = null;
  };
  at.timer = setTimeout(at.restore, 3000);
  if (at.stands) return at;
  at.own = { alert: window.alert, confirm: window.confirm, prompt: window.prompt, open: window.open };
  const note = (type, message) => {
    const answer = type === 'alert' ? 'closed' : at.accepted ? 'accepted' : 'dismissed';
    if (at.said.length < 10) at.said.push({ type, message: squeeze(String(message ?? ''), 500), answer });
    return at.accepted;
  };
  at.stands = {
    alert: (message) => { note('alert', message); },
    confirm: (message) => note('confirm', message),
    prompt: (message, usual) => (note('prompt', message) ? String(at.promptText ?? usual ?? '') : null),
    open: (...to) => {
      const tab = at.own.open.apply(window, to);
      if (at.opened.length < 10) at.opened.push(squeeze(String(to[0] ?? 'about:blank'), 500) + (tab ? '' : ' (the browser has blocked it)'));
      return tab;
    },
  };
  at.uncovered = Object.keys(at.stands).filter((name) => {
    try { window[name] = at.stands[name]; } catch {}
    return window[name] !== at.stands[name];
  });
  return at;
};
const acting = (act, clicks) => (given) => {
  const element = given.selector === undefined ? null : one(given.selector);
  const seen = document.visibilityState === 'visible';
  const at = answerDialogs(given);
  let leaving;
  const leave = () => { leaving ??= performance.now(); };
  addEventListener('beforeunload', leave, { once: true });
  const link = clicks && element?.closest?.('a[target][href]');
  if (link && !['', '_self', '_top', '_parent'].includes(link.target.toLowerCase())) at.opened.push(squeeze(link.href, 500));
  let done;
  try { done = act(given); } catch (error) { at.restore(); throw error; }
  return [done, () => {
    // Downloads are asked for like pages, and no page comes.
    if (performance.now() - leaving < 2500) return { leaving: true };
    removeEventListener('beforeunload', leave);
    at.restore();
    const text = element?.isConnected && element.isContentEditable ? ['text ' + JSON.stringify(textOf(element, 200))] : [];
    const now = !element ? null : element.isConnected ? [...text, ...state(element)].join(', ') : 'no longer on the page';
    return { url: location.href, title: document.title, now, dialogs: at.said.splice(0), opened: at.opened.splice(0), uncovered: at.uncovered, pending: !!leaving,
      behind: seen && document.visibilityState === 'hidden' };
  }];
};
const driveActing = ([done, effect], token) => {
  keep(token, () => tell(() => {
    const told = effect();
    if (!told.leaving) kept().delete(token);
    return { ok: told };
  }));
  return tell(() => ({ ok: done, watched: true }));
};
