/**
 * Copies by a selected field within `beside`, which works on plain http where the clipboard of
 * `navigator` does not exist. Returns false when the browser refused.
 */
export function copyText(text: string, beside: HTMLElement): boolean {
  const active = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.className = 'visually-hidden';
  field.setAttribute('aria-hidden', 'true');
  // Within a dialog the focus may not leave it.
  beside.append(field);
  field.focus({ preventScroll: true });
  field.select();
  let copied = false;
  try {
    copied = document.execCommand('copy');
  } catch {
    // Refused: said by the caller.
  }
  field.remove();
  if (active instanceof HTMLElement) active.focus({ preventScroll: true });
  return copied;
}
