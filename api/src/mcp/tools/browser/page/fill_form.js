({ fields, submit }) => {
  const truth = (value) => {
    if (!['true', 'false'].includes(value)) throw new Error('value: true or false');
    return value === 'true';
  };
  const fill = ({ selector, type, value }) => {
    const element = one(selector);
    const own = element.tagName === 'INPUT' && ['checkbox', 'radio'].includes(element.type) ? element.type
      : element.tagName === 'SELECT' ? 'select' : element.type === 'range' ? 'slider' : 'text';
    if (element.disabled) throw new Error('selector: the field is disabled');
    switch (type ?? own) {
      case 'checkbox':
      case 'radio':
        if (own !== 'checkbox' && own !== 'radio') throw new Error('type: the element is none');
        if (element.checked !== truth(value)) element.click();
        if (element.checked !== truth(value)) throw new Error('value: the field does not take it');
        break;
      case 'select': choose(element, [value]); break;
      default:
        element.focus?.();
        if (element.isContentEditable) {
          getSelection().selectAllChildren(element);
          if (!document.execCommand('insertText', false, value)) element.textContent = value;
        } else if (hasValue(inner(element))) {
          const input = inner(element), before = input.value;
          put(input, value);
          if (!takes(input, value, before)) throw new Error('value: the field does not take it');
        } else throw new Error('selector: nothing can be typed into this element');
    }
    return element;
  };
  let form;
  const done = fields.map((field) => {
    try {
      const element = fill(field);
      form ??= element.form;
      return { field: field.selector, ok: true };
    } catch (error) {
      return { field: field.selector, ok: false, error: String(error.message) };
    }
  });
  if (submit) {
    if (!done.every((it) => it.ok)) throw new Error('submit: not done, as not all fields were filled in: ' + JSON.stringify(done));
    if (!form) throw new Error('submit: the fields are in no form; they were filled in');
    form.requestSubmit();
  }
  return done;
}
