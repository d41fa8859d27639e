({ selector, key, ctrlKey, shiftKey, altKey, metaKey }) => {
  const element = selector ? one(selector) : document.activeElement ?? document.body;
  if (selector) element.focus?.();
  press(element, key, { ctrlKey: !!ctrlKey, shiftKey: !!shiftKey, altKey: !!altKey, metaKey: !!metaKey });
  return { success: true };
}
