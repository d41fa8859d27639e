({ selector, attributes, limit }) => all(selector).slice(0, limit).map((element) => ({
  ref: ref(element),
  text: squeeze(element.innerText ?? element.textContent, 500),
  attributes: Object.fromEntries((attributes ?? []).map((name) => [name, element.getAttribute(name)])),
}))
