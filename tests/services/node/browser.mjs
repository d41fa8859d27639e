// Chromium, driven by lines of JSON on standard input; each is answered by one on standard output.
//   {"goto": URL}            → {"status", "url"}      {"fill": [SELECTOR, TEXT]}, {"click": SELECTOR} → {"url"}
//   {"visit": URL} as an extension leads a tab there, whatever comes of it; {"pages": true} → {"tabs", "tab"}: as an extension lists them → {}
//   {"at": URL} waits for an address        {"see": SELECTOR} waits for something in sight     → {}
//   {"tabs": [COUNT, URL]} opens more pages beside the first; {"everywhere": SELECTOR} waits for it in all pages → {}
//   {"gone": SELECTOR} waits until nothing of it is in sight                                   → {}
//   {"press": [SELECTOR, KEY]}, {"type": TEXT} where the focus is                              → {}
//   {"choose": [SELECTOR, [[NAME, TEXT], …]]} → {}: files, in a field for them
//   {"look": {"scheme", "width", "locale"}} → {}: the same session in another browser    {"whole": FILE} → {}: PNG of a whole page
//   {"weigh": [URL, SELECTOR]} → {"requests": [URL, …], "bytes", "elsewhere"}: requests before the menu or
//                              a form, without icons, and bytes until the selector is in sight, in a browser with an empty cache
//   {"asked": true}          → {"asked": [PATH, …], "paint"}: requests since the last time, without streams,
//                              and the longest milliseconds from an interaction to the next paint
//   {"sweep": SELECTOR}      → {"opened": [NAME, …]}: clicks each control, and each item of menus that open
//   {"replace": [GLOB, FROM, TO]} → {}: in the text of answers from now on
//   {"answer": [GLOB, TYPE, TEXT]} → {}: instead of the service, from now on
//   {"text": SELECTOR}       → {"text"}               {"cookies": true} → {"cookies": [{name, httpOnly, sameSite, …}]}
//   {"screenshot": FILE}     → {}                     {"forget": true}  → {} (a browser that was never anywhere)
//   {"fetch": [URL, FIELDS, FILES]} → {"status", "body"}: what a page gets; FIELDS are posted, and FILES: [[NAME, TEXT], …]
//   {"execute": SCRIPT}      → {"result"} or {"result": {"error"}}: as an extension evaluates it in the page
//   {"own": EXPRESSION}      → {"value"} or {"value": {"error"}}, whatever the page's policy says
//   {"picture": true}        → {"data"}: PNG in base64
//   {"download": URL}        → {"name", "text"}: of a link that is clicked
//   {"save": SELECTOR}       → {"name", "text"}: of a download that a click begins
//   {"axe": true}            → {"violations": [TEXT, …]}: of WCAG 2.2 A and AA, as far as axe finds them
// What fails is answered with {"error", "url", "shown"}: the page's address and its text.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync',
    // An address over plain HTTP that is not localhost: no clipboard, no locks.
    '--host-resolver-rules=MAP agentyard.test 127.0.0.1'],
});
let context, page;
let said = [];
let asked = [];
let visited = '';
const replaced = [];

async function forget(settings = {}) {
  // A request under way when its page goes is no failure.
  await page?.unrouteAll({ behavior: 'ignoreErrors' });
  await context?.close();
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...settings });
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => console.error('policy:', event.violatedDirective, event.blockedURI));
    const waits = (globalThis.waits = []);
    new PerformanceObserver((list) => waits.push(...list.getEntries().map((entry) => entry.duration)))
      .observe({ type: 'event', durationThreshold: 16 });
  });
  page = await context.newPage();
  page.setDefaultTimeout(20_000);
  said = [];
  asked = [];
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.startsWith('/api/') && !pathname.endsWith('/watch')) asked.push(pathname + search);
  });
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(String(error)));
}

/** Opens an address. Chromium gives up when the engine changes the network's interfaces meanwhile; a person would try again. */
async function openPage(tab, url) {
  for (let left = 5; ; left -= 1) {
    try {
      return await tab.goto(url, { waitUntil: 'load' });
    } catch (error) {
      if (left === 0 || !String(error).includes('ERR_NETWORK_CHANGED')) throw error;
    }
  }
}

const does = {
  async forget() { await forget(); },
  async look({ scheme, width, locale }) {
    const storageState = await context.storageState();
    await forget({ viewport: { width, height: 800 }, colorScheme: scheme, locale, storageState, reducedMotion: 'reduce' });
  },
  async goto(url) {
    const response = await openPage(page, url);
    return { status: response.status(), url: page.url() };
  },
  async visit(url) {
    visited = url;
    await page.goto(url, { waitUntil: 'load' }).catch(() => {});
  },
  async pages() {
    const told = async (tab, at) => ({
      id: at + 1, title: await tab.title().catch(() => ''), active: true,
      // Its own error page has the address that was asked for.
      url: tab.url().startsWith('chrome-error:') ? visited : tab.url(),
    });
    const tabs = await Promise.all(context.pages().map(told));
    return { tabs, tab: tabs[context.pages().indexOf(page)] };
  },
  async fill([selector, text]) { await page.fill(selector, text); },
  async click(selector) {
    await page.click(selector);
    await page.waitForLoadState('load');
    return { url: page.url() };
  },
  async at(url) { await page.waitForURL(url, { timeout: 60_000 }); },
  async see(selector) { await page.waitForSelector(selector, { state: 'visible', timeout: 60_000 }); },
  async tabs([count, url]) {
    for (let at = 0; at < count; at += 1) await openPage(await context.newPage(), url);
    await page.bringToFront();
  },
  async everywhere(selector) {
    await Promise.all(context.pages().map((tab) => tab.waitForSelector(selector, { state: 'visible', timeout: 60_000 })));
  },
  async gone(selector) { await page.waitForSelector(selector, { state: 'hidden', timeout: 60_000 }); },
  async press([selector, key]) { await page.press(selector, key); },
  async type(text) { await page.keyboard.type(text); },
  async choose([selector, files]) {
    const chosen = files.map(([name, text]) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) }));
    await page.setInputFiles(selector, chosen);
  },
  async weigh([url, selector]) {
    const tab = await context.newPage();
    const devtools = await context.newCDPSession(tab);
    await devtools.send('Network.enable');
    await devtools.send('Network.setCacheDisabled', { cacheDisabled: true });
    // Answers take longer than the page needs to show what it has.
    await devtools.send('Network.emulateNetworkConditions',
      { offline: false, latency: 200, downloadThroughput: -1, uploadThroughput: -1 });
    const seen = { bytes: 0, elsewhere: [] };
    devtools.on('Network.requestWillBeSent', ({ request }) => {
      const own = new URL(request.url).origin === new URL(url).origin;
      if (!own && !/^(data|blob):/.test(request.url)) seen.elsewhere.push(request.url);
    });
    devtools.on('Network.loadingFinished', ({ encodedDataLength }) => { seen.bytes += encodedDataLength; });
    await tab.addInitScript(() => {
      new MutationObserver((_, observer) => {
        if (!document.querySelector('nav, form')) return;
        performance.mark('shown');
        observer.disconnect();
      }).observe(document, { childList: true, subtree: true });
    });
    await tab.goto(url);
    await tab.waitForSelector(selector, { state: 'visible', timeout: 60_000 });
    const requests = await tab.evaluate(() => {
      const [shown] = performance.getEntriesByName('shown');
      const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
      const needed = entries.filter((entry) => entry.responseEnd <= shown.startTime && !entry.name.endsWith('.svg'));
      return needed.map((entry) => entry.name);
    });
    const weighed = { ...seen, requests };
    await tab.close();
    return weighed;
  },
  async asked() {
    // A busy machine takes longer for the first request; one too many would follow soon.
    for (let at = 0; at < 50 && asked.length === 0; at += 1) await page.waitForTimeout(100);
    await page.waitForTimeout(400);
    const paint = await page.evaluate(() => Math.max(0, ...globalThis.waits.splice(0)));
    return { asked: asked.splice(0), paint };
  },
  async sweep(selector) {
    const opened = [];
    const home = page.url();
    const controls = page.locator(`:is(${selector}):visible:not([disabled], [aria-disabled=true])`);
    const items = page.locator('[role=menuitem]:visible:not([disabled])');
    const read = (all) => all.evaluateAll((found) => found.map((one) => one.ariaLabel ?? one.innerText));
    const close = async () => {
      await page.keyboard.press('Escape');
      await page.keyboard.press('Escape');
      const open = page.locator('[role=dialog]:visible, [role=menu]:visible').first();
      const closed = await open.waitFor({ state: 'hidden', timeout: 1_000 }).then(() => true, () => false);
      if (!closed || page.url() !== home) await page.goto(home, { waitUntil: 'load' });
      await controls.first().waitFor();
    };
    // What an action hides for a while is there again after some seconds.
    const find = async (name, tries = 15) => {
      const at = (await read(controls)).indexOf(name);
      if (at >= 0 || tries === 0) return at < 0 ? undefined : controls.nth(at);
      await page.waitForTimeout(200);
      return find(name, tries - 1);
    };
    const names = await read(controls);
    for (const name of names) {
      const control = await find(name);
      if (!control) continue;
      opened.push(name);
      await control.click();
      await page.waitForTimeout(200);
      const inside = await read(items);
      for (const [at, item] of inside.entries()) {
        if (at > 0) await (await find(name)).click();
        opened.push(item);
        await items.nth(at).click();
        await page.waitForTimeout(200);
        await close();
      }
      if (inside.length === 0) await close();
      for (const later of await read(controls)) if (!names.includes(later)) names.push(later);
    }
    return { opened };
  },
  async replace([glob, from, to]) {
    replaced.push([from, to]);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.route(glob, async (route) => {
      // Only the browser knows the service's name.
      const url = route.request().url().replace('agentyard.test', '127.0.0.1');
      const response = await route.fetch({ url }).catch(() => undefined);
      if (!response) return;
      let body = await response.text();
      for (const [from, to] of replaced) body = body.replaceAll(from, () => to);
      await route.fulfill({ response, body });
    });
  },
  async answer([glob, contentType, body]) { await page.route(glob, (route) => route.fulfill({ contentType, body })); },
  async text(selector) { return { text: await page.textContent(selector) }; },
  async cookies() { return { cookies: await context.cookies() }; },
  async screenshot(path) { await page.screenshot({ path }); },
  async whole(path) { await page.screenshot({ path, fullPage: true }); },
  async fetch([url, fields, files]) {
    return page.evaluate(async ([url, fields, files]) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields ?? {})) form.append(name, value);
      for (const [name, text] of files ?? []) form.append('file', new File([text], name));
      const answer = await fetch(url, fields ? { method: 'POST', body: form } : {});
      return { status: answer.status, body: await answer.json() };
    }, [url, fields, files]);
  },
  async download(url) {
    // Without the attribute `download`: of links with it, Chromium follows ten a second.
    await page.evaluate((url) => {
      const link = document.createElement('a');
      Object.assign(link, { id: 'download', href: url, textContent: 'Download' });
      document.body.replaceChildren(link);
    }, url);
    return does.save('#download');
  },
  async save(selector) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(selector)]);
    return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
  },
  async execute(script) {
    // Later, as what a driver evaluates itself may do what the page's policy forbids.
    return page.evaluate((script) => new Promise((done) => setTimeout(() => {
      try { done({ result: (0, eval)(script) }); } catch (error) { done({ result: { error: String(error) } }); }
    })), script).catch((error) => ({ result: { error: String(error) } }));
  },
  // As the scripts that an extension brings along, which a page's policy does not stop.
  async own(script) {
    try { return { value: await page.evaluate(script) }; } catch (error) { return { value: { error: { message: String(error) } } }; }
  },
  async picture() { return { data: (await page.screenshot()).toString('base64') }; },
  async axe() {
    await page.evaluate(createRequire(import.meta.url)('axe-core').source);
    const violations = await page.evaluate(async (values) => {
      // Colours are those at the end of a transition.
      const animations = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime < Infinity);
      await Promise.allSettled(animations.map((one) => one.finished));
      return (await axe.run({ runOnly: { type: 'tag', values }, resultTypes: ['violations'], preload: false })).violations;
    }, ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']);
    const tell = ({ html, any }) => `${html} (${any.map(({ message }) => message).join('; ')})`;
    return { violations: violations.map(({ id, nodes }) => `${id}: ${nodes.map(tell).join(', ')}`) };
  },
  async console() { return { console: said }; },
};

await forget();
console.log('{}');
for await (const line of createInterface({ input: process.stdin })) {
  const [[what, given]] = Object.entries(JSON.parse(line));
  try {
    console.log(JSON.stringify((await does[what](given)) ?? {}));
  } catch (error) {
    const shown = await page.innerText('body', { timeout: 1_000 }).catch(() => '');
    console.log(JSON.stringify({ error: String(error), url: page.url(), shown: shown.slice(0, 2_000) }));
  }
}
await browser.close();
