import { Button } from '@mantine/core';
import { type ReactNode, useSyncExternalStore } from 'react';

import { hasNewVersion, onNewVersion } from '../app/new-version';
import { useT } from '../i18n';
import styles from './layout.module.css';

/** Says that the server has a newer release of the console. */
export function NewVersion(): ReactNode {
  const t = useT();
  const seen = useSyncExternalStore(onNewVersion, hasNewVersion);
  if (!seen) return null;
  return (
    <div role="status" className={styles.banner}>
      <span>{t('version.new')}</span>
      <Button size="compact-sm" onClick={() => location.reload()}>
        {t('version.reload')}
      </Button>
    </div>
  );
}
