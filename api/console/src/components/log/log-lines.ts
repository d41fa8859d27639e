import { visibleText } from '../../modules/visible-text';

/** A line of a log. */
export interface LogLine {
  /** Time of writing, if known. */
  time?: Date;
  text: string;
  /** A mark that is no line of the log, such as the end of the container. */
  mark?: boolean;
}

const STAMPED = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) ?/;

/** Reads a line as the server sends it: its time, then its text. */
export function readLogLine(line: string): LogLine {
  const stamp = STAMPED.exec(line);
  if (stamp?.[1] === undefined) return { text: visibleText(line) };
  return {
    time: new Date(stamp[1].replace(/(\.\d{3})\d+Z$/, '$1Z')),
    text: visibleText(line.slice(stamp[0].length)),
  };
}

/** Reads the text of a log. */
export function readLog(text: string): LogLine[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line) => readLogLine(line.replace(/\r$/, '')));
}

/** Numbers of the lines that have the words, in any case. */
export function findLines(lines: LogLine[], words: string): number[] {
  const wanted = words.toLowerCase();
  if (wanted === '') return [];
  return lines.flatMap((line, at) => (line.text.toLowerCase().includes(wanted) ? [at] : []));
}

/** Cuts a text where words are found in it, in any case; every second piece is a find. */
export function cutAtFinds(text: string, words: string): string[] {
  if (words === '') return [text];
  const pieces: string[] = [];
  const low = text.toLowerCase();
  const wanted = words.toLowerCase();
  let at = 0;
  for (let found = low.indexOf(wanted); found >= 0; found = low.indexOf(wanted, at)) {
    pieces.push(text.slice(at, found), text.slice(found, found + wanted.length));
    at = found + wanted.length;
  }
  return [...pieces, text.slice(at)];
}

/** The log as a file. */
export function logFile(lines: LogLine[]): Blob {
  const text = lines.map(
    ({ time, text: line }) => `${time === undefined ? '' : `${time.toISOString()} `}${line}\n`,
  );
  return new Blob(text, { type: 'text/plain;charset=utf-8' });
}
