import type { components } from '../generated/schema';

type Configuration = components['schemas']['Configuration'];
type KeysOf<G extends keyof Configuration & string> = string extends keyof NonNullable<Configuration[G]>
  ? G
  : `${G}.${keyof NonNullable<Configuration[G]> & string}`;

/** First part of a setting's key. */
export type SettingGroup = keyof Configuration & string;
/** Key of a setting of the service. */
export type SettingKey = { [G in SettingGroup]: KeysOf<G> }[SettingGroup];
/** For each setting a title and a sentence. */
export type SettingTexts = Record<SettingKey, readonly [title: string, text: string]>;

/** JSON Schema of the configuration: groups with properties, settings with a title. */
export interface SettingSchema {
  type?: string;
  format?: string;
  title?: string;
  description?: string;
  default?: unknown;
  secret?: boolean;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  properties?: Record<string, SettingSchema>;
  /** False for a setting that the service does not support yet. */
  'x-available'?: boolean;
}

/** A setting with its value in effect. */
export interface Setting {
  key: string;
  group: string;
  /** English title and text of the service. */
  title: string;
  text: string;
  /** Secrets in it are masked. */
  value: unknown;
  default: unknown;
  isDefault: boolean;
  /** The value, or each of its leaves, is never shown. */
  isSecret: boolean;
  /** A document of the agent program, which may have secrets anywhere. */
  mayHoldSecrets: boolean;
  type: string;
  format?: string;
  /** The values that it may have. */
  options?: string[];
  minimum?: number;
  maximum?: number;
  isAvailable: boolean;
}

/** Stands for a secret that is set. */
export const MASK = '********';
/** Default of `container.capabilities` when the adapter runs agents as the image's user. */
const IMAGE_CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'];

function isDefault(key: string, value: unknown, usual: unknown): boolean {
  const text = JSON.stringify(value);
  if (key === 'container.capabilities' && text === JSON.stringify(IMAGE_CAPABILITIES)) return true;
  return text === JSON.stringify(usual);
}

/** Lists the settings that the schema names, with their values in the document. */
export function readSettings(schema: SettingSchema, document: unknown, path: string[] = []): Setting[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, node]) => {
    const value = (document as Record<string, unknown> | undefined)?.[name];
    const parts = [...path, name];
    if (node.title === undefined) return readSettings(node, value, parts);
    const key = parts.join('.');
    return {
      key,
      group: parts[0] ?? key,
      title: node.title,
      text: node.description ?? '',
      value,
      default: node.default,
      isDefault: isDefault(key, value, node.default),
      isSecret: node.secret === true,
      mayHoldSecrets: node.type === 'object' && node.properties === undefined,
      type: node.type ?? 'string',
      format: node.format,
      options: node.enum,
      minimum: node.minimum,
      maximum: node.maximum,
      isAvailable: node['x-available'] !== false,
    };
  });
}
