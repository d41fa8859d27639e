/** Shorter texts are one part. */
const SMALL = 4000;
/** Parts are at least this long, so that there are few. */
const PART = 1500;
/** Longer parts are shown as plain text: to format them may take seconds. */
const MOST = 20_000;
/** Columns of a table from which a part is shown as plain text. */
const MOST_COLUMNS = 60;
/** Marks of quotes and lists on one line that nest deeper than anything readable. */
const DEEP = /^[ \t]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+|>[ \t]*){30}/m;
/** Begin of a line that goes on with what is before it: indented, an item, a quote, a definition. */
const GOES_ON = /^(?:[ \t]|[-+*][ \t]|\d{1,9}[.)][ \t]|>|\[)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

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
  if (text.length <= SMALL) return [partOf(text)];
  const parts: MarkdownPart[] = [];
  let begin = 0;
  let fence = '';
  let blank = false;
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at);
    const next = end < 0 ? text.length : end + 1;
    const line = text.slice(at, next);
    const mark = FENCE.exec(line)?.[1] ?? '';
    if (fence === '' && blank && at - begin >= PART && !GOES_ON.test(line)) {
      parts.push(partOf(text.slice(begin, at)));
      begin = at;
    }
    if (fence === '') fence = mark;
    else if (mark.startsWith(fence) && line.trim() === mark) fence = '';
    blank = line.trim() === '';
    at = next;
  }
  parts.push(partOf(text.slice(begin)));
  return parts;
}

function partOf(text: string): MarkdownPart {
  return { text, plain: text.length > MOST || DEEP.test(text) || hasManyColumns(text) };
}

function hasManyColumns(text: string): boolean {
  return text.split('\n').some((line) => line.split('|', MOST_COLUMNS + 1).length > MOST_COLUMNS);
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
