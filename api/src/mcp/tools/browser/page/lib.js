// What the scripts of this folder share. It runs in pages of strangers: what it brings is checked like anything else they write.
// Pages may have classes of their own with the names of the browser's.
const [Event, KeyboardEvent, MouseEvent] = ['Event', 'KeyboardEvent', 'MouseEvent'].map((kind) => document.createEvent(kind).constructor);
const { InputEvent, PointerEvent, HTMLFormElement } = window;
const REF = 'data-mcp-ref';
const INTERACTIVE = 'a[href],button,input:not([type=hidden]),select,textarea,summary,[contenteditable=""],[contenteditable=true],' +
  '[onclick],[tabindex]:not([tabindex="-1"]),[role=button],[role=link],[role=checkbox],[role=radio],[role=switch],[role=tab],' +
  '[role=menuitem],[role=menuitemcheckbox],[role=menuitemradio],[role=option],[role=combobox],[role=textbox],[role=searchbox],' +
  '[role=slider],[role=spinbutton],[role=treeitem]';
const one = (selector) => {
  let found;
  try { found = document.querySelector(selector); } catch { throw new Error('selector: not a CSS selector: ' + selector); }
  if (!found) {
    const [, mark] = /^\[data-mcp-ref="(e\d+)"\]$/.exec(selector) ?? [];
    throw new Error(mark ? 'selector: ' + mark + ' is no longer on the page; browser_snapshot gives new refs' : 'selector: no element matches ' + selector);
  }
  return found;
};
const all = (selector) => {
  try { return [...document.querySelectorAll(selector)]; } catch { throw new Error('selector: not a CSS selector: ' + selector); }
};
const root = (selector) => (selector ? one(selector) : document.body ?? document.documentElement);
const squeeze = (text, most) => {
  const flat = (text ?? '').replace(/\s+/g, ' ').trim();
  return flat.length > most ? flat.slice(0, most) + '…' : flat;
};
const UNREAD = /^(script|style|noscript|template|head|meta|link)$/i;
// The text of an element as it is shown: so many characters of it at most, from so many nodes that a large page costs no more than a
// small one. What `instead` gives stands for an element.
const textOf = (element, most, instead) => {
  let said = '', left = 400;
  const add = (node, shown) => {
    for (let child = node.firstChild; child; child = child.nextSibling) {
      if (said.length > 2 * most || --left < 0) return;
      if (child.nodeType === 3) {
        if (shown) said += child.data.trimStart() === '' ? ' ' : child.data.slice(0, 4 * most);
        continue;
      }
      if (child.nodeType !== 1 || UNREAD.test(child.tagName)) continue;
      const { display, visibility } = getComputedStyle(child);
      if (display === 'none') continue;
      const other = instead?.(child);
      const apart = other !== undefined || child.tagName === 'BR' || !display.startsWith('inline') ? ' ' : '';
      said += apart;
      if (other !== undefined) said += other; else add(child, visibility === 'visible');
      said += apart;
    }
  };
  add(element, true);
  return squeeze(said, most) + (left < 0 && said.length <= most ? ' …' : '');
};
// Returns true if the text of a child matches by itself.
const childSays = (element, says) => {
  let left = 50;
  for (let child = element.firstElementChild; child && left-- > 0; child = child.nextElementSibling) {
    if (says(textOf(child, 200))) return true;
  }
  return false;
};
const visible = (element) => {
  const style = getComputedStyle(element);
  if (style.display === 'none' || style.visibility === 'hidden') return false;
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.height > 0;
};
const interactive = (element) => element.matches(INTERACTIVE);
// Numbers that are in use stay with their elements; a copy of an element gets one of its own.
let last = 0;
const taken = new Map();
for (const element of all('[' + REF + ']')) {
  const name = element.getAttribute(REF);
  const number = /^e(\d{1,9})$/.exec(name);
  if (!number || taken.has(name)) { element.removeAttribute(REF); continue; }
  taken.set(name, element);
  last = Math.max(last, +number[1]);
}
const ref = (element) => {
  if (element.getRootNode() !== document) return null;
  const known = element.getAttribute(REF);
  if (known) return known;
  element.setAttribute(REF, 'e' + ++last);
  return 'e' + last;
};
const INPUTS = { button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
  range: 'slider', number: 'spinbutton', search: 'searchbox' };
const TAGS = { A: 'link', BUTTON: 'button', TEXTAREA: 'textbox', IMG: 'img', SVG: 'img', UL: 'list', OL: 'list', LI: 'listitem',
  TABLE: 'table', TR: 'row', TD: 'cell', TH: 'columnheader', NAV: 'navigation', MAIN: 'main', HEADER: 'banner', FOOTER: 'contentinfo',
  ASIDE: 'complementary', FORM: 'form', DIALOG: 'dialog', FIELDSET: 'group', OPTION: 'option', PROGRESS: 'progressbar', SUMMARY: 'button',
  ARTICLE: 'article', IFRAME: 'iframe', VIDEO: 'video', AUDIO: 'audio' };
const role = (element) => {
  const given = element.getAttribute('role');
  if (given) return given.trim().split(/\s+/)[0];
  const tag = element.tagName.toUpperCase();
  if (/^H[1-6]$/.test(tag)) return 'heading';
  if (tag === 'INPUT') return INPUTS[element.type] ?? 'textbox';
  if (tag === 'SELECT') return element.multiple || element.size > 1 ? 'listbox' : 'combobox';
  if (tag === 'A' && !element.hasAttribute('href')) return null;
  return TAGS[tag] ?? (element.isContentEditable && element.hasAttribute('contenteditable') ? 'textbox' : null);
};
// The labels of all controls, read once: `element.labels` looks through the whole page for each.
const labels = new Map();
const labelsOf = (element) => {
  const root = element.getRootNode();
  if (!labels.has(root)) {
    const known = new Map();
    for (const label of root.querySelectorAll?.('label') ?? []) {
      if (label.control && !known.has(label.control)) known.set(label.control, []);
      known.get(label.control)?.push(label);
    }
    labels.set(root, known);
  }
  return labels.get(root).get(element) ?? [];
};
const named = (ids) => ids.split(/\s+/).slice(0, 5).map((id) => document.getElementById(id)).map((it) => it ? textOf(it, 200) : '').join(' ');
// A label's text without that of the control in it.
const labelled = (element) => ('labels' in element ? labelsOf(element) : []).slice(0, 3)
  .map((label) => textOf(label, 200, (inner) => inner.matches('input,select,textarea,button,meter,output,progress') ? '' : undefined)).join(' ');
const name = (element) => {
  const by = element.getAttribute('aria-labelledby');
  const label = element.getAttribute('aria-label') || (by && named(by).trim()) || labelled(element).trim() ||
    element.getAttribute('alt') || element.getAttribute('placeholder');
  if (label) return squeeze(label, 200);
  if (element.tagName === 'INPUT' && INPUTS[element.type] === 'button') return squeeze(element.value, 200);
  const own = interactive(element) && !['INPUT', 'SELECT', 'TEXTAREA'].includes(element.tagName);
  if (own || ['heading', 'option', 'columnheader'].includes(role(element))) return textOf(element, 200);
  return squeeze(element.getAttribute('title') || element.getAttribute('name') || '', 200);
};
// The field with the focus in the shadow roots of a web component, or the element itself.
const inner = (element) => {
  let field = element;
  while (!hasValue(field) || field.tagName.includes('-')) {
    const next = field.shadowRoot?.activeElement;
    if (!next) break;
    field = next;
  }
  return hasValue(field) || field.isContentEditable ? field : element;
};
const hasValue = (element) => ['INPUT', 'TEXTAREA'].includes(element.tagName) || (element.tagName.includes('-') && typeof element.value === 'string');
const plainText = (value) => value.replace(/\r\n?/g, '\n').trim();
// Fields may write a text in another form, such as a phone number with blanks.
const takes = (field, wanted, before) => {
  const value = field.value;
  const loose = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
  if (plainText(value) === plainText(wanted)) return true;
  if (field.type === 'range') return wanted.trim() !== '' && Number.isFinite(+wanted);
  if (loose(wanted) !== '' && loose(value) === loose(wanted)) return true;
  return field.type !== 'color' && value !== '' && value !== before;
};
const secret = (element) => (element.tagName === 'INPUT' && element.type === 'password') ||
  (element.tagName.includes('-') && (element.type === 'password' || !element.shadowRoot || !!element.shadowRoot.querySelector('input[type=password]')));
const state = (element) => {
  const said = [];
  const tag = element.tagName;
  if (tag === 'INPUT' && (element.type === 'checkbox' || element.type === 'radio')) said.push(element.checked ? 'checked' : 'not checked');
  else if (secret(element)) { if (typeof element.value === 'string') said.push(element.value ? 'value hidden' : 'empty'); }
  else if ((tag === 'INPUT' && INPUTS[element.type] !== 'button') || tag === 'TEXTAREA') said.push('value ' + JSON.stringify(squeeze(element.value, 200)));
  else if (tag.includes('-') && typeof element.value === 'string') said.push('value ' + JSON.stringify(squeeze(element.value, 200)));
  else if (tag === 'SELECT') said.push('selected ' + JSON.stringify([...element.selectedOptions].map((it) => squeeze(it.label, 80))));
  for (const flag of ['checked', 'selected', 'expanded', 'pressed']) {
    const value = element.getAttribute('aria-' + flag);
    if (value) said.push(flag + ' ' + squeeze(value, 20));
  }
  if (element.disabled || element.getAttribute('aria-disabled') === 'true') said.push('disabled');
  if (element === document.activeElement && element !== document.body) said.push('focused');
  return said;
};
// Values of inputs go through the setter of their class, past what frameworks have put over it.
const put = (element, value) => {
  const own = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), 'value');
  if (own?.set) own.set.call(element, value); else element.value = value;
  element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
};
const choose = (element, values) => {
  if (element.tagName !== 'SELECT') throw new Error('selector: not a drop-down list');
  const options = [...element.options];
  const wanted = values.map((value) => {
    const found = options.find((it) => it.value === value) ?? options.find((it) => it.label.trim() === value.trim());
    if (!found) throw new Error('values: there is no option ' + value + ', only ' + options.slice(0, 20).map((it) => it.label).join(', '));
    return found;
  });
  if (wanted.length > 1 && !element.multiple) throw new Error('values: only one option can be selected here');
  for (const option of options) option.selected = wanted.includes(option);
  element.dispatchEvent(new Event('input', { bubbles: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
  return wanted.map((it) => it.label);
};
const point = (element) => {
  element.scrollIntoView({ block: 'center', inline: 'center' });
  const box = element.getBoundingClientRect();
  return { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 };
};
const KEYS = { Backspace: 8, Tab: 9, Enter: 13, Escape: 27, ' ': 32, PageUp: 33, PageDown: 34, End: 35, Home: 36, ArrowLeft: 37, ArrowUp: 38,
  ArrowRight: 39, ArrowDown: 40, Delete: 46 };
// Enter and Space do what a person's do, unless the page does something else with them.
const press = (element, key, held = {}) => {
  const code = /^[a-z]$/i.test(key) ? 'Key' + key.toUpperCase() : /^\d$/.test(key) ? 'Digit' + key : key === ' ' ? 'Space' : key;
  const keyCode = KEYS[key] ?? (key.length === 1 ? key.toUpperCase().charCodeAt(0) : 0);
  const at = { key, code, keyCode, which: keyCode, bubbles: true, cancelable: true, composed: true, view: window, ...held };
  let goes = element.dispatchEvent(new KeyboardEvent('keydown', at));
  if (goes && (key.length === 1 || key === 'Enter')) goes = element.dispatchEvent(new KeyboardEvent('keypress', at));
  element.dispatchEvent(new KeyboardEvent('keyup', at));
  if (!goes || !element.isConnected || !['Enter', ' '].includes(key)) return;
  if (held.ctrlKey || held.altKey || held.metaKey) return;
  const input = element.tagName === 'INPUT', button = ['BUTTON', 'SUMMARY'].includes(element.tagName) || (input && INPUTS[element.type] === 'button');
  if (button || (key === 'Enter' ? element.matches('a[href]') : input && ['checkbox', 'radio'].includes(element.type))) {
    element.click?.();
    return;
  }
  if (key === ' ') return;
  if (element.isContentEditable || element.tagName === 'TEXTAREA') {
    if (element.readOnly || element.matches(':disabled')) return;
    const line = element.tagName === 'TEXTAREA' || held.shiftKey;
    if (document.execCommand(line ? 'insertLineBreak' : 'insertParagraph') || element.isContentEditable) return;
    element.setRangeText('\n', element.selectionStart, element.selectionEnd, 'end');
    element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    return;
  }
  const form = input && !held.shiftKey && !['color', 'file'].includes(element.type) ? element.form : null;
  if (!form) return;
  const buttons = [...form.querySelectorAll('button:not([type]),button[type=submit],input[type=submit],input[type=image]')];
  if (buttons[0]?.disabled) throw new Error('submit: the button that Enter presses is disabled');
  const bad = form.noValidate || buttons[0]?.formNoValidate ? null : form.querySelector(':invalid:not(fieldset)');
  if (bad) throw new Error('submit: the page does not take the form: ' + (name(bad) || bad.id || bad.tagName.toLowerCase()) + ': ' + bad.validationMessage);
  HTMLFormElement.prototype.requestSubmit.call(form, buttons[0]);
};
