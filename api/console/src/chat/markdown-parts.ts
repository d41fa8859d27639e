/** Shorter texts are one part. */
const SMALL = 4000;
/** Parts are at least this long, so that there are few. */
const PART = 1500;
/** Limits of a part, without its blocks of code; beyond them it may take seconds to format and stays plain. */
const MOST_LENGTH = 20_000;
const MOST_LINES = 2000;
const MOST_MARKS = 2500;
const MOST_CELLS = 5000;
const MOST_COMMENTS = 100;
/** Limit of a part with its blocks of code. */
const MOST_WITH_CODE = 120_000;
/** Marks of quotes and lists on one line that nest deeper than anything readable. */
const DEEP = /^[ \t]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+|>[ \t]*){30}/m;
/** Begin of a line that goes on with what is before it: indented, an item, a quote, a definition. */
const GOES_ON = /^(?:[ \t]|[-+*][ \t]|\d{1,9}[.)][ \t]|>|\[)/;
const FENCE = /^ {0,3}(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)\n?$/;

/** Part of a Markdown text that is formatted by itself. */
export interface MarkdownPart {
  text: string;
  plain: boolean;
}

/**
 * Cuts a long text between paragraphs. A text that grows keeps its first parts, so that only the last is
 * formatted again.
 */
export function cutMarkdown(text: string): MarkdownPart[] {
  const isSmall = text.length <= SMALL;
  const parts: MarkdownPart[] = [];
  let begin = 0;
  let words: string[] = [];
  let fence = '';
  let blank = false;
  const close = (end: number): void => {
    const part = text.slice(begin, end);
    parts.push({ text: part, plain: part.length > MOST_WITH_CODE || isHeavy(words) });
    begin = end;
    words = [];
  };
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at);
    const next = end < 0 ? text.length : end + 1;
    const line = text.slice(at, next);
    const found = FENCE.exec(line);
    const mark = found?.[1] ?? found?.[2] ?? '';
    if (!isSmall && fence === '' && blank && at - begin >= PART && !GOES_ON.test(line)) close(at);
    if (fence === '') {
      words.push(line);
      fence = mark;
    } else if (mark.startsWith(fence) && line.trim() === mark) fence = '';
    blank = line.trim() === '';
    at = next;
  }
  close(text.length);
  return parts;
}

/** Returns true for what formatting would take too long. */
function isHeavy(lines: string[]): boolean {
  const text = lines.join('');
  const count = (what: RegExp): number => text.match(what)?.length ?? 0;
  const rows = lines.filter((line) => line.includes('|'));
  const columns = Math.max(0, ...rows.map((line) => line.split('|').length));
  return (
    text.length > MOST_LENGTH ||
    lines.length > MOST_LINES ||
    count(/[*_~[\]`|!>]/g) > MOST_MARKS ||
    count(/<!/g) > MOST_COMMENTS ||
    columns * rows.length > MOST_CELLS ||
    DEEP.test(text)
  );
}

/** Address of a link when it is one that may be followed from here; nothing for any other. */
export function safeUrl(url: string): string | undefined {
  try {
    return ['http:', 'https:', 'mailto:'].includes(new URL(url).protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

interface Node {
  type: string;
  value?: string;
  children?: Node[];
}

/** Depth of a formatted text beyond which it is cut to its words. */
const DEPTH = 40;

/** Remark plugin that replaces what is nested too deeply by its text. */
export function limitDepth() {
  return (tree: Node): void => {
    const open: [Node, number][] = [[tree, 0]];
    for (let top = open.pop(); top !== undefined; top = open.pop()) {
      const [node, depth] = top;
      if (depth >= DEPTH && node.children) node.children = [{ type: 'text', value: wordsOf(node) }];
      else for (const child of node.children ?? []) open.push([child, depth + 1]);
    }
  };
}

function wordsOf(node: Node): string {
  const words: string[] = [];
  const open = [node];
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    if (top.value !== undefined) words.push(top.value);
    open.push(...(top.children ?? []).toReversed());
  }
  return words.join(' ');
}
