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
  const field = inner(element);
  let reformatted = false;
  if (field.isContentEditable) {
    const selection = getSelection();
    selection.selectAllChildren(field);
    if (append) selection.collapseToEnd();
    const done = text === '' ? append || document.execCommand('delete') : document.execCommand('insertText', false, text);
    if (!done) {
      if (append) field.append(text); else field.textContent = text;
      field.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertText', data: text }));
    }
  } else if (hasValue(field)) {
    const before = field.value, wanted = append ? before + text : text;
    put(field, wanted);
    if (!takes(field, wanted, before)) {
      const form = { number: '3.5', range: '50', date: '2026-01-31', time: '13:45', 'datetime-local': '2026-01-31T13:45', month: '2026-01',
        week: '2026-W05', color: '#ff0000' }[kind];
      throw new Error('text: the field' + (form ? ' (' + kind + ')' : '') + ' does not take it' + (form ? '; it takes a text such as ' + form : '') +
        (secret(element) || secret(field) ? '' : '. Its value is now ' + JSON.stringify(squeeze(field.value, 80))));
    }
    reformatted = plainText(field.value) !== plainText(wanted);
  } else if (field.tagName.includes('-') && document.activeElement === field) {
    // The field is in a closed shadow root.
    if (!append) document.execCommand('selectAll');
    if (!document.execCommand(text === '' ? 'delete' : 'insertText', false, text)) throw new Error('selector: nothing can be typed into this element');
  } else throw new Error('selector: nothing can be typed into this element');
  if (submit) try { press(field, 'Enter'); } catch (error) { throw new Error('the text was typed; then: ' + error.message); }
  return { success: true, reformatted };
}
