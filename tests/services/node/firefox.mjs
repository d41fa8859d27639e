// Debian's Firefox, driven by WebDriver BiDi. Reads and answers as browser.mjs does, with fewer things to do:
//   {"goto": URL} → {}      {"at": URL} → {}      {"see": SELECTOR} → {}      {"fill": [SELECTOR, TEXT]} → {}
//   {"click": SELECTOR} → {"url"}                 {"console": true} → {"console": [TEXT, …]}
import { createInterface } from 'node:readline';
import puppeteer from 'puppeteer-core';

const browser = await puppeteer.launch({
  browser: 'firefox',
  executablePath: '/usr/bin/firefox-esr',
  defaultViewport: { width: 1280, height: 800 },
  // An address over plain HTTP that is not localhost.
  extraPrefsFirefox: { 'network.dns.localDomains': 'agentyard.test' },
});
const timeout = 60_000;
const said = [];
const page = await browser.newPage();
page.setDefaultTimeout(timeout);
page.on('console', (message) => ['error', 'warn'].includes(message.type()) && said.push(message.text()));
page.on('pageerror', (error) => said.push(String(error)));
await page.evaluateOnNewDocument(() => {
  addEventListener('securitypolicyviolation', (event) => console.error('policy:', event.violatedDirective, event.blockedURI));
});

const does = {
  async goto(url) { await page.goto(url, { waitUntil: 'load' }); },
  async at(url) { await page.waitForFunction((url) => location.href === url, { timeout }, url); },
  async see(selector) { await page.locator(selector).wait(); },
  async fill([selector, text]) { await page.locator(selector).fill(text); },
  async click(selector) {
    await page.locator(selector).click();
    return { url: page.url() };
  },
  async console() { return { console: said }; },
};

console.log('{}');
for await (const line of createInterface({ input: process.stdin })) {
  const [[what, given]] = Object.entries(JSON.parse(line));
  try {
    console.log(JSON.stringify((await does[what](given)) ?? {}));
  } catch (error) {
    const shown = await page.evaluate(() => document.body.innerText).catch(() => '');
    console.log(JSON.stringify({ error: String(error), url: page.url(), shown: shown.slice(0, 2_000) }));
  }
}
await browser.close();
