({ selector, text }) => {
  const element = one(selector);
  element.focus?.();
  if (element.isContentEditable) {
    const selection = getSelection();
    selection.selectAllChildren(element);
    selection.collapseToEnd();
    if (!document.execCommand('insertText', false, text)) element.append(text);
  } else if ('value' in element) put(element, element.value + text);
  else throw new Error('selector: nothing can be typed into this element');
  return { success: true };
}
