// Control characters but tab, and those that turn the direction of the text.
const HIDDEN = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Makes characters visible that would change how a text of others looks: `\u202e`. */
export function visibleText(text: string): string {
  return text.replace(HIDDEN, (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);
}
