import type { Entry, ServerFrame } from './protocol';

const TYPES = new Set<string>([
  'hello',
  'entry',
  'remove',
  'state',
  'conversation',
  'refused',
  'pong',
  'end',
] satisfies ServerFrame['type'][]);
const KINDS = new Set<string>([
  'user',
  'answer',
  'thought',
  'tools',
  'files',
  'failure',
  'notice',
] satisfies Entry['kind'][]);

/** Reads a frame; returns nothing for what this page does not know. */
export function readFrame(data: unknown): ServerFrame | undefined {
  if (typeof data !== 'string') return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(data);
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const { type, entry } = parsed as { type?: unknown; entry?: { kind?: unknown } | null };
  if (typeof type !== 'string' || !TYPES.has(type)) return undefined;
  if (type === 'entry' && !KINDS.has(String(entry?.kind))) return undefined;
  return parsed as ServerFrame;
}
