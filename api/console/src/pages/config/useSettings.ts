import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';

import { configQuery, configSchemaQuery } from '../../api/queries/config';
import { type SettingNames, useSettingNames } from '../../i18n/settings';
import { readSettings } from '../../modules/settings';
import { nameSettings, type ShownSetting } from './filter-settings';

/** All settings with their values and words. */
export interface LoadedSettings {
  settings: ShownSetting[];
  names: SettingNames;
  generation: number;
}

/** Loads the settings; `loaded` is undefined until all of it is there. */
export function useSettings(): { loaded?: LoadedSettings; error: Error | null; retry: () => void } {
  const names = useSettingNames();
  const config = useQuery(configQuery);
  const described = useQuery(configSchemaQuery);
  const loaded = useMemo(() => {
    if (!config.data || !described.data || !names) return undefined;
    const { document, generation } = config.data;
    return {
      settings: nameSettings(readSettings(described.data.schema, document), names),
      names,
      generation,
    };
  }, [config.data, described.data, names]);
  const retry = (): void => {
    void config.refetch();
    void described.refetch();
  };
  return { loaded, error: config.error ?? described.error, retry };
}
