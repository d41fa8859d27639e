import { ActionIcon, Drawer, Menu } from '@mantine/core';
import IconMenu2 from '@tabler/icons-react/icons/IconMenu2';
import { Link, Outlet } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import { useSession } from '../app/useSession';
import { useT } from '../i18n';
import { LiveProvider } from '../live/LiveProvider';
import { CommandPalette } from '../pages/palette/CommandPalette';
import { AccountMenu } from './AccountMenu';
import styles from './layout.module.css';
import { LiveBanner } from './LiveBanner';
import { LivePill } from './LivePill';
import { SectionMenu } from './SectionMenu';
import { SkipLink } from './SkipLink';

/** Frame of the administrator's pages: menu, top bar, content. */
export function AdminLayout(): ReactNode {
  const t = useT();
  const { username } = useSession();
  const [open, setOpen] = useState(false);
  const close = (): void => setOpen(false);
  return (
    <LiveProvider path="/api/admin/watch" account={username}>
      <SkipLink />
      <div className={styles.admin}>
        <aside className={styles.side} aria-label={t('app.name')}>
          <div className={styles.menu}>
            <div className={`brand ${styles.brand}`}>{t('app.name')}</div>
            <SectionMenu />
          </div>
        </aside>
        <Drawer
          opened={open}
          onClose={close}
          size={260}
          title={<span className="brand">{t('app.name')}</span>}
          closeButtonProps={{ 'aria-label': t('layout.menu.close') }}
        >
          <SectionMenu onChoose={close} />
        </Drawer>
        <div className={styles.body}>
          <header className={styles.top}>
            <ActionIcon
              className={styles.burger}
              variant="subtle"
              color="gray"
              size="lg"
              aria-label={t('layout.menu.open')}
              onClick={() => setOpen(true)}
            >
              <IconMenu2 size={20} aria-hidden />
            </ActionIcon>
            <div id="top-slot" className="grow" />
            <CommandPalette />
            <LivePill />
            <AccountMenu name={username}>
              <Menu.Item
                renderRoot={(props) => (
                  <Link to="/admin/superadmins/$name" params={{ name: username }} {...props} />
                )}
              >
                {t('account.title')}
              </Menu.Item>
            </AccountMenu>
          </header>
          <main id="content" tabIndex={-1} className={styles.content}>
            <LiveBanner />
            <Outlet />
          </main>
        </div>
      </div>
    </LiveProvider>
  );
}
