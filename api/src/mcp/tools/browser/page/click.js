({ selector, button, clicks, modifiers }) => {
  const element = one(selector);
  if (element.matches(':disabled')) throw new Error('selector: the element is disabled');
  const number = { left: 0, middle: 1, right: 2 }[button ?? 'left'];
  const held = (name) => (modifiers ?? []).includes(name);
  const at = { ...point(element), bubbles: true, cancelable: true, composed: true, view: window, button: number,
    altKey: held('Alt'), ctrlKey: held('Control'), metaKey: held('Meta'), shiftKey: held('Shift') };
  const pressed = { ...at, buttons: [1, 4, 2][number] };
  for (let detail = 1; detail <= (clicks ?? 1); detail++) {
    element.dispatchEvent(new PointerEvent('pointerdown', { ...pressed, pointerType: 'mouse' }));
    element.dispatchEvent(new MouseEvent('mousedown', { ...pressed, detail }));
    if (detail === 1) element.focus?.();
    element.dispatchEvent(new PointerEvent('pointerup', { ...at, pointerType: 'mouse' }));
    element.dispatchEvent(new MouseEvent('mouseup', { ...at, detail }));
    const type = ['click', 'auxclick', 'contextmenu'][number];
    element.dispatchEvent(new MouseEvent(type, { ...at, detail }));
    if (detail === 2 && number === 0) element.dispatchEvent(new MouseEvent('dblclick', { ...at, detail }));
  }
  return { success: true };
}
