import { Radio } from '@mantine/core';
import { type ReactNode, useId, useState } from 'react';

import { useT, useTranslation } from '../../../i18n';
import { type Language, LANGUAGE_NAMES, LANGUAGES } from '../../../i18n/language';
import { type Scheme, storedScheme, storeScheme } from '../../../scheme';
import styles from '../manage.module.css';

const SCHEMES = { system: 'layout.theme.system', light: 'theme.light', dark: 'theme.dark' } as const;

/** Language and theme of the console in this browser. */
export function LookCard(): ReactNode {
  const t = useT();
  const id = useId();
  const { language, setLanguage } = useTranslation();
  const [scheme, setScheme] = useState(() => storedScheme() ?? 'system');
  const choose = (value: string): void => {
    setScheme(value as Scheme | 'system');
    storeScheme(value === 'system' ? undefined : (value as Scheme));
  };
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{t('look.title')}</h2>
      <div className={styles.choices}>
        <Radio.Group
          label={t('layout.language')}
          value={language}
          onChange={(value) => setLanguage(value as Language)}
        >
          <div className={styles.radios}>
            {LANGUAGES.map((one) => (
              <Radio key={one} value={one} label={LANGUAGE_NAMES[one]} lang={one} size="xs" />
            ))}
          </div>
        </Radio.Group>
        <Radio.Group label={t('layout.theme')} value={scheme} onChange={choose}>
          <div className={styles.radios}>
            {(['system', 'light', 'dark'] as const).map((one) => (
              <Radio key={one} value={one} label={t(SCHEMES[one])} size="xs" />
            ))}
          </div>
        </Radio.Group>
      </div>
    </section>
  );
}
