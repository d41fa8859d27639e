import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { useT } from '../../i18n';
import { ConfigFrame } from './ConfigFrame';
import { useSettings } from './useSettings';

/** The service's settings: read, changed after a look at what that means, and taken back. */
export function ConfigPage(): ReactNode {
  const t = useT();
  const { loaded, error, retry } = useSettings();
  if (loaded) return <ConfigFrame {...loaded} />;
  return (
    <div className="stack">
      <h1>{t('section.config')}</h1>
      {error ? (
        <ErrorState failure={Failure.from(error)} onRetry={retry} />
      ) : (
        <div className="card" aria-busy>
          <LoadingState rows={12} />
        </div>
      )}
    </div>
  );
}
