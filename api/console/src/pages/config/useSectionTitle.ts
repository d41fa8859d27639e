import { useT } from '../../i18n';
import { useConfigForm } from './config-form';
import type { SettingSection } from './sections';

/** Returns the function that says the title of a section. */
export function useSectionTitle(): (section: SettingSection) => string {
  const t = useT();
  const { names } = useConfigForm();
  return ({ id, title }) => (title === undefined ? names.group(id) : t(title));
}
