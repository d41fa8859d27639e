import { Button, Menu } from '@mantine/core';
import IconCheck from '@tabler/icons-react/icons/IconCheck';
import IconChevronDown from '@tabler/icons-react/icons/IconChevronDown';
import { type ReactNode, useState } from 'react';

import { post } from '../api/client';
import { Failure } from '../api/failure';
import { useToasts } from '../components/toast-store';
import { useT, useTranslation } from '../i18n';
import { LANGUAGE_NAMES, LANGUAGES } from '../i18n/language';
import { ownUrl } from '../prefix';
import { type Scheme, storedScheme, storeScheme } from '../scheme';
import styles from './layout.module.css';

const SCHEMES = [undefined, 'light', 'dark'] as const;
const SCHEME_KEYS = { system: 'layout.theme.system', light: 'theme.light', dark: 'theme.dark' } as const;

/** Menu of the account: language, theme, sign out; `children` are further entries. */
export function AccountMenu({ name, children }: { name: string; children?: ReactNode }): ReactNode {
  const t = useT();
  const { language, setLanguage } = useTranslation();
  const [scheme, setScheme] = useState(storedScheme);
  const toasts = useToasts();
  const choose = (value: Scheme | undefined): void => {
    storeScheme(value);
    setScheme(value);
  };
  const signOut = async (): Promise<void> => {
    try {
      await post('/api/logout', {}, { keepUnauthorized: true, noCsrf: true });
      location.assign(ownUrl('/login'));
    } catch (thrown) {
      toasts.fail(t('layout.signout.failed'), Failure.from(thrown));
    }
  };
  const mark = (chosen: boolean): ReactNode =>
    chosen ? <IconCheck size={16} aria-hidden /> : <span className={styles.noCheck} />;
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
        {LANGUAGES.map((one) => (
          <Menu.Item
            key={one}
            lang={one}
            leftSection={mark(one === language)}
            onClick={() => setLanguage(one)}
          >
            {LANGUAGE_NAMES[one]}
          </Menu.Item>
        ))}
        <Menu.Label>{t('layout.theme')}</Menu.Label>
        {SCHEMES.map((one) => (
          <Menu.Item key={one ?? 'system'} leftSection={mark(one === scheme)} onClick={() => choose(one)}>
            {t(SCHEME_KEYS[one ?? 'system'])}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item onClick={() => void signOut()}>{t('layout.signout')}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
