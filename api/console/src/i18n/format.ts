/** Values for the placeholders of a message. */
export type Values<V> = Record<string, V>;

type Piece = string | { name: string } | { name: string; plural: Record<string, Piece[]> } | { count: true };

const parsed = new Map<string, Piece[]>();

/**
 * Fills in an ICU message: `{name}`, and `{n, plural, =0 {…} one {# agent} other {# agents}}`.
 * Returns its parts, so that a value may be an element.
 */
export function formatParts<V>(message: string, values: Values<V>, language: string): (string | V)[] {
  let pieces = parsed.get(message);
  if (pieces === undefined) {
    pieces = new Parser(message).read();
    parsed.set(message, pieces);
  }
  return fill(pieces, values, language);
}

function fill<V>(pieces: Piece[], values: Values<V>, language: string, count?: number): (string | V)[] {
  return pieces.flatMap((piece): (string | V)[] => {
    if (typeof piece === 'string') return [piece];
    if ('count' in piece) return [new Intl.NumberFormat(language).format(count ?? 0)];
    const value = values[piece.name];
    if ('plural' in piece) {
      const number = Number(value);
      const category = new Intl.PluralRules(language).select(number);
      const branch = piece.plural[`=${number}`] ?? piece.plural[category] ?? piece.plural.other ?? [];
      return fill(branch, values, language, number);
    }
    if (value === undefined) return [`{${piece.name}}`];
    return [typeof value === 'number' ? new Intl.NumberFormat(language).format(value) : value];
  });
}

/** Reader of one message. */
class Parser {
  private at = 0;

  constructor(private readonly text: string) {}

  /** Reads up to the end, or to the brace that closes a branch. */
  read(inPlural = false): Piece[] {
    const pieces: Piece[] = [];
    let plain = '';
    const flush = (): void => {
      if (plain !== '') pieces.push(plain);
      plain = '';
    };
    while (this.at < this.text.length && this.text[this.at] !== '}') {
      const char = this.text[this.at++] ?? '';
      if (char === '{') {
        flush();
        pieces.push(this.placeholder());
      } else if (char === '#' && inPlural) {
        flush();
        pieces.push({ count: true });
      } else {
        plain += char;
      }
    }
    flush();
    return pieces;
  }

  private placeholder(): Piece {
    const head = /^\s*([A-Za-z]\w*)\s*(,\s*plural\s*,)?/.exec(this.text.slice(this.at));
    if (!head?.[1]) throw new Error(`message cannot be read: ${this.text}`);
    this.at += head[0].length;
    const plural: Record<string, Piece[]> = {};
    for (;;) {
      const branch = /^\s*(=\d+|\w+)\s*\{/.exec(this.text.slice(this.at));
      if (!branch?.[1]) break;
      this.at += branch[0].length;
      plural[branch[1]] = this.read(true);
      this.at += 1;
    }
    const close = this.text.indexOf('}', this.at);
    if (close < 0) throw new Error(`message has an open brace: ${this.text}`);
    this.at = close + 1;
    return head[2] === undefined ? { name: head[1] } : { name: head[1], plural };
  }
}
