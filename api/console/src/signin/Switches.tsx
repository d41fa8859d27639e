import { type ReactNode, useSyncExternalStore } from 'react';

import { LANGUAGE_NAMES, LANGUAGES } from '../i18n/language';
import { useTranslation } from '../i18n/translator';
import { onSchemeChange, pageScheme, type Scheme, storeScheme } from '../scheme';
import { Choice } from './Choice';
import { useSigninT } from './keys';
import styles from './signin.module.css';

/** Switches of language and theme. */
export function Switches(): ReactNode {
  const t = useSigninT();
  const { language, setLanguage } = useTranslation();
  const scheme = useSyncExternalStore(onSchemeChange, pageScheme);
  const languages = LANGUAGES.map((value) => ({ value, text: LANGUAGE_NAMES[value], lang: value }));
  const schemes: { value: Scheme; text: string }[] = [
    { value: 'light', text: t('theme.light') },
    { value: 'dark', text: t('theme.dark') },
  ];
  return (
    <div className={styles.feet}>
      <Choice label={t('signin.language')} value={language} options={languages} onChange={setLanguage} />
      <Choice label={t('signin.theme')} value={scheme} options={schemes} onChange={storeScheme} />
    </div>
  );
}
