import type { MessageKey } from '../../i18n';

/** A refusal of a registry in words. */
export interface FaultTexts {
  title: MessageKey;
  help: MessageKey;
}

/** Sentences of the server, which has one code for all refusals, by what they mean. */
const FAULTS: [RegExp, FaultTexts][] = [
  [/refuses to list the tags/, { title: 'registry.refused', help: 'registry.refused.help' }],
  [/can't be reached/, { title: 'registry.away', help: 'registry.away.help' }],
  [/did not answer in time/, { title: 'registry.slow', help: 'registry.slow.help' }],
  [/has no such repository/, { title: 'registry.missing', help: 'registry.missing.help' }],
  [/was asked too often/, { title: 'registry.busy', help: 'registry.busy.help' }],
];

/** Names the fault of a registry and the registry itself; undefined for what is not known here. */
export function explainFault(message: string): (FaultTexts & { registry: string }) | undefined {
  const registry = /^the registry (\S+) /.exec(message)?.[1];
  const found = FAULTS.find(([pattern]) => pattern.test(message));
  return registry === undefined || found === undefined ? undefined : { ...found[1], registry };
}
