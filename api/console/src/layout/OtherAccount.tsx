import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';

import { shownAccount } from '../api/account';
import { Rich, useT } from '../i18n';
import { ownUrl } from '../prefix';
import styles from './layout.module.css';

/** Shown in place of every page once another account has signed in in this browser. */
export function OtherAccount({ name }: { name: string }): ReactNode {
  const t = useT();
  const client = useQueryClient();
  useEffect(() => {
    client.clear();
    // A tab that nobody looks at needs no word.
    if (document.hidden) location.replace(ownUrl('/'));
  }, [client]);
  const own = <strong>{shownAccount()}</strong>;
  return (
    <main className={styles.message}>
      <h1>{t('session.other', { name })}</h1>
      <p role="alert">
        <Rich k="session.other.text" values={{ own, name: <strong>{name}</strong> }} />
      </p>
      <p className="dim">
        <Rich k="session.other.drafts" values={{ own }} />
      </p>
      <div>
        <Button variant="filled" onClick={() => location.replace(ownUrl('/'))}>
          {t('session.other.go', { name })}
        </Button>
      </div>
    </main>
  );
}
