import { visibleText } from '../../modules/visible-text';

/** Reason why a user could not be moved: that of a condition, if the sentence names one, and the sentence. */
export interface UserFailure {
  reason?: string;
  text: string;
}

/** Reads the server's sentence: without the end of the log, which has its own place, and without the reason. */
export function readFailure(message: string): UserFailure {
  const text = visibleText(message.replace(/; end of its log: .*$/s, ''));
  const [, before = '', reason, rest = ''] =
    /^(?:(not ready within \d+ s|.{0,60}? in time): )?([A-Z][A-Za-z]+): (.*)$/.exec(text) ?? [];
  if (reason === undefined) return { text };
  return { reason, text: before === '' ? rest : `${before}: ${rest}` };
}
