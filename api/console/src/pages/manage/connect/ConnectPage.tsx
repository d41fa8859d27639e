import type { ReactNode } from 'react';

import { useSession } from '../../../app/useSession';
import { Copy } from '../../../components/Copy';
import { Rich, useT } from '../../../i18n';
import styles from '../manage.module.css';
import { serviceAddress } from '../service-address';
import { SubPage } from '../SubPage';
import { ExecutorCard } from './ExecutorCard';

const PARTS = {
  browser: { title: 'connect.how.browser', get: 'connect.get.browser', after: 'connect.after.browser' },
  desktop: { title: 'connect.how.desktop', get: 'connect.get.desktop', after: 'connect.after.desktop' },
} as const;

/** Says how a browser and a desktop are connected to the agent. */
export function ConnectPage(): ReactNode {
  const t = useT();
  const { username } = useSession();
  const address = serviceAddress();
  return (
    <SubPage title={t('connect.title')} text={t('connect.text')}>
      <div className={styles.pair}>
        <ExecutorCard kind="browser" withHelp={false} />
        <ExecutorCard kind="desktop" withHelp={false} />
      </div>
      {(['browser', 'desktop'] as const).map((kind) => (
        <section key={kind} id={kind} className={`card ${styles.section ?? ''}`}>
          <h2>{t(PARTS[kind].title)}</h2>
          <ol className={styles.steps}>
            <li>{t(PARTS[kind].get)}</li>
            <li>
              <Rich k="connect.address" values={{ address: <code>{address}</code> }} />{' '}
              <Copy text={address} label={t('connect.copy')} />
            </li>
            <li>
              <Rich k="connect.sign.in" values={{ name: <strong>{username}</strong> }} />
            </li>
            <li>{t(PARTS[kind].after)}</li>
          </ol>
        </section>
      ))}
    </SubPage>
  );
}
