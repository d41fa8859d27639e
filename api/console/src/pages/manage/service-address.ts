import { prefix } from '../../prefix';

/** Address under which this service is reached, without a slash at its end. */
export function serviceAddress(): string {
  return `${location.origin}${prefix}`;
}
