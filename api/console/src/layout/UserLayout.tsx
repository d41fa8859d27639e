import { Menu } from '@mantine/core';
import { Link, Outlet } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { useSession } from '../app/useSession';
import { useT } from '../i18n';
import { LiveProvider } from '../live/LiveProvider';
import { AccountMenu } from './AccountMenu';
import styles from './layout.module.css';
import { LiveBanner } from './LiveBanner';
import { LivePill } from './LivePill';
import { SkipLink } from './SkipLink';

/** Frame of a user's own pages: a top bar and one column. */
export function UserLayout(): ReactNode {
  const t = useT();
  const { username } = useSession();
  return (
    <LiveProvider path="/api/user/watch" account={username}>
      <SkipLink />
      <div className={styles.user}>
        <header className={styles.top}>
          <Link to="/manage" className="brand">
            {t('app.name')}
          </Link>
          <span className="grow" />
          <LivePill />
          <AccountMenu name={username}>
            <Menu.Item renderRoot={(props) => <Link to="/manage/account" {...props} />}>
              {t('account.title')}
            </Menu.Item>
          </AccountMenu>
        </header>
        <main id="content" tabIndex={-1} className="stack">
          <LiveBanner />
          <Outlet />
        </main>
      </div>
    </LiveProvider>
  );
}
