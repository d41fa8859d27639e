({ selector }) => {
  const element = one(selector);
  const at = { ...point(element), bubbles: true, cancelable: true, composed: true, view: window };
  for (const type of ['pointerover', 'pointerenter', 'pointermove']) {
    element.dispatchEvent(new PointerEvent(type, { ...at, bubbles: type !== 'pointerenter', pointerType: 'mouse' }));
  }
  for (const type of ['mouseover', 'mouseenter', 'mousemove']) {
    element.dispatchEvent(new MouseEvent(type, { ...at, bubbles: type !== 'mouseenter' }));
  }
  return { success: true };
}
