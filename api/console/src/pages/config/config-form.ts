import { createContext, use } from 'react';

import type { SettingNames } from '../../i18n/settings';
import type { ShownSetting } from './filter-settings';
import type { DraftControl } from './useConfigDraft';

/** The settings with what is unsaved of them, shared by all parts of the page. */
export interface ConfigForm extends DraftControl {
  settings: ShownSetting[];
  names: SettingNames;
  /** Generation of the configuration that is shown. */
  generation: number;
  /** Sentences about values that cannot be sent or were refused, by key. */
  errors: Record<string, string>;
  /** Shows what the unsaved changes would do. */
  review: () => void;
  /** Opens the section of a setting and leads to its field. */
  reveal: (key: string) => void;
  /** Number of calls of `reveal`. */
  revealed: number;
  /** Opens the preview of a rollback. */
  rollBack: (revision: number) => void;
  /** Number of saves that were made from the page. */
  saves: number;
}

export const ConfigFormContext = createContext<ConfigForm | undefined>(undefined);

/** Returns the form of the page around. */
export function useConfigForm(): ConfigForm {
  const form = use(ConfigFormContext);
  if (form === undefined) throw new Error('no ConfigFormContext');
  return form;
}
