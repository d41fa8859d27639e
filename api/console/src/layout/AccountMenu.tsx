import { Button, Menu } from '@mantine/core';
import IconChevronDown from '@tabler/icons-react/icons/IconChevronDown';
import { type ReactNode, useState } from 'react';

import { tellTabs } from '../api/account';
import { post } from '../api/client';
import { Failure } from '../api/failure';
import { useToasts } from '../components/toast-store';
import { useT, useTranslation } from '../i18n';
import { type Language, LANGUAGE_NAMES, LANGUAGES } from '../i18n/language';
import { forgetDrafts } from '../modules/drafts';
import { ownUrl } from '../prefix';
import { type Scheme, storedScheme, storeScheme } from '../scheme';

const SCHEMES = ['system', 'light', 'dark'] as const;
const SCHEME_KEYS = { system: 'layout.theme.system', light: 'theme.light', dark: 'theme.dark' } as const;

/** Menu of the account: language, theme, sign out; `children` are further entries. */
export function AccountMenu({ name, children }: { name: string; children?: ReactNode }): ReactNode {
  const t = useT();
  const { language, setLanguage } = useTranslation();
  const [scheme, setScheme] = useState(storedScheme);
  const toasts = useToasts();
  const choose = (value: string): void => {
    const chosen = value === 'system' ? undefined : (value as Scheme);
    storeScheme(chosen);
    setScheme(chosen);
  };
  const signOut = async (): Promise<void> => {
    try {
      await post('/api/logout', {}, { keepUnauthorized: true, noCsrf: true });
      forgetDrafts();
      tellTabs({ signedOut: name });
      location.assign(ownUrl('/login'));
    } catch (thrown) {
      toasts.fail(t('layout.signout.failed'), Failure.from(thrown));
    }
  };
  return (
    <Menu position="bottom-end" width={210}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          size="compact-md"
          rightSection={<IconChevronDown size={14} aria-hidden />}
          aria-label={t('layout.account', { name })}
        >
          {name}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {children}
        <Menu.Label>{t('layout.language')}</Menu.Label>
        <Menu.RadioGroup value={language} onChange={(value) => setLanguage(value as Language)}>
          {LANGUAGES.map((one) => (
            <Menu.RadioItem key={one} value={one} lang={one}>
              {LANGUAGE_NAMES[one]}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Label>{t('layout.theme')}</Menu.Label>
        <Menu.RadioGroup value={scheme ?? 'system'} onChange={choose}>
          {SCHEMES.map((one) => (
            <Menu.RadioItem key={one} value={one}>
              {t(SCHEME_KEYS[one])}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Divider />
        <Menu.Item onClick={() => void signOut()}>{t('layout.signout')}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
