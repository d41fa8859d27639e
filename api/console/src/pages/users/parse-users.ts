import type { Schemas } from '../../api/types';

/** A user that is to be created. */
export interface NewUser {
  name: string;
  /** Empty: random. */
  password: string;
}

/** Users that were read from a text, and what could not be read. */
export interface ParsedUsers {
  users: NewUser[];
  /** Names that are there more than once. */
  repeated: string[];
}

const HEADINGS = new Set(['name', 'username', 'user', 'login']);

/**
 * Reads names from pasted text: one a line, with a password after a comma, semicolon or tab, and quotes as in
 * CSV. A line of headings is left out. A single line of several names without passwords works as well.
 */
export function parseUsers(text: string): ParsedUsers {
  const rows = readRows(text).filter((row) => row.some((cell) => cell !== ''));
  const isHeading = HEADINGS.has(rows[0]?.[0]?.toLowerCase() ?? '') && rows.length > 1;
  const [only] = rows;
  const oneLine = rows.length === 1 && only !== undefined && only.length > 2;
  const listed = oneLine ? only.map((name) => [name]) : rows.slice(isHeading ? 1 : 0);
  const users = new Map<string, NewUser>();
  const repeated: string[] = [];
  for (const [name = '', password = ''] of listed) {
    if (name === '') continue;
    if (users.has(name)) repeated.push(name);
    else users.set(name, { name, password });
  }
  return { users: [...users.values()], repeated };
}

/** Adds the passwords that were given to results that hold only the random ones. */
export function withPasswords(
  results: Schemas['BatchOutcome'][],
  users: NewUser[],
): Schemas['BatchOutcome'][] {
  if (results.length !== users.length) return results;
  return results.map((result, at) => {
    const password = users[at]?.password ?? '';
    return result.success && password !== '' ? { ...result, password: result.password ?? password } : result;
  });
}

/** Cuts text into rows of cells. */
function readRows(text: string): string[][] {
  const rows: string[][] = [[]];
  let cell = '';
  let quoted = false;
  let wasQuoted = false;
  const endCell = (): void => {
    rows.at(-1)?.push(wasQuoted ? cell : cell.trim());
    cell = '';
    wasQuoted = false;
  };
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? '';
    if (quoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else quoted = false;
    } else if (char === '"' && cell.trim() === '') {
      quoted = true;
      wasQuoted = true;
      cell = '';
    } else if (char === ',' || char === ';' || char === '\t') endCell();
    else if (char === '\n' || char === '\r') {
      endCell();
      rows.push([]);
    } else if (!(wasQuoted && char === ' ')) cell += char;
  }
  endCell();
  return rows;
}

/** Names and passwords as a CSV file; cells that a spreadsheet would run as formulas are kept as text. */
export function writeUsers(rows: { username: string; password?: string | null }[]): string {
  const cell = (text: string): string => (/[",;\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = rows.map(({ username, password }) => `${cell(username)},${cell(password ?? '')}\n`);
  return `username,password\n${lines.join('')}`;
}
