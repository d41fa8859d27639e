({ selector }) => {
  const element = one(selector);
  return { content: ['INPUT', 'TEXTAREA', 'SELECT'].includes(element.tagName) ? element.value : element.innerText ?? element.textContent ?? '' };
}
