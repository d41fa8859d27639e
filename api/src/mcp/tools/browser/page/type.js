({ selector, text, append, submit }) => {
  const element = one(selector);
  const kind = element.tagName === 'INPUT' ? element.type : element.tagName.toLowerCase();
  if (kind === 'select') throw new Error('selector: a drop-down list; use browser_select_option');
  if (['checkbox', 'radio', 'file', 'button', 'submit', 'reset', 'image'].includes(kind)) {
    throw new Error('selector: nothing can be typed into an input of type ' + kind);
  }
  if (element.matches(':disabled')) throw new Error('selector: the field is disabled');
  if (element.readOnly) throw new Error('selector: the field is read-only');
  element.focus?.();
  if (element.isContentEditable) {
    const selection = getSelection();
    selection.selectAllChildren(element);
    if (append) selection.collapseToEnd();
    const done = text === '' ? append || document.execCommand('delete') : document.execCommand('insertText', false, text);
    if (!done) {
      if (append) element.append(text); else element.textContent = text;
      element.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertText', data: text }));
    }
  } else if (['INPUT', 'TEXTAREA'].includes(element.tagName)) {
    const wanted = append ? element.value + text : text;
    put(element, wanted);
    const plain = (value) => value.replace(/\r\n?/g, '\n').trim();
    if (plain(element.value) !== plain(wanted)) {
      const form = { number: '3.5', range: '50', date: '2026-01-31', time: '13:45', 'datetime-local': '2026-01-31T13:45', month: '2026-01',
        week: '2026-W05', color: '#ff0000' }[kind];
      throw new Error('text: the field' + (form ? ' (' + kind + ')' : '') + ' does not take it' + (form ? '; it takes a text such as ' + form : '') +
        (secret(element) ? '' : '. Its value is now ' + JSON.stringify(squeeze(element.value, 80))));
    }
  } else throw new Error('selector: nothing can be typed into this element');
  if (submit) try { press(element, 'Enter'); } catch (error) { throw new Error('the text was typed; then: ' + error.message); }
  return { success: true };
}
