import { Button } from '@mantine/core';
import type { ErrorComponentProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../api/failure';
import { ErrorState } from '../components/ErrorState';
import { useT } from '../i18n';
import styles from './layout.module.css';

/** Shown in place of a page that failed: by a request, or by a defect of the console. */
export function BrokenPage({ error, reset }: ErrorComponentProps): ReactNode {
  const t = useT();
  if (error instanceof Failure) return <ErrorState failure={error} onRetry={reset} />;
  return (
    <div role="alert" className={styles.message}>
      <h1>{t('page.broken')}</h1>
      <p className="dim">{t('page.broken.text')}</p>
      <pre lang="en">{error instanceof Error ? `${error.name}: ${error.message}` : String(error)}</pre>
      <div>
        <Button variant="filled" onClick={() => location.reload()}>
          {t('page.reload')}
        </Button>
      </div>
    </div>
  );
}
