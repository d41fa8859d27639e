import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Failure } from '../../api/failure';
import { ErrorState } from '../../components/ErrorState';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import styles from './images.module.css';
import { explainFault } from './registry-fault';

/** Says why the registry lists no tags, what helps, and where that is set. */
export function RegistryFault({ failure, onRetry }: { failure: Failure; onRetry: () => void }): ReactNode {
  const t = useT();
  const fault = explainFault(failure.message);
  if (fault === undefined) return <ErrorState failure={failure} onRetry={onRetry} />;
  const { title, help, registry } = fault;
  return (
    <ErrorState
      title={t('registry.failed')}
      text={t(title, { registry: visibleText(registry) })}
      help={
        <span className={styles.linked}>
          {t(help)}{' '}
          <Link to="/admin/settings" search={{ key: 'image.registry_username' }}>
            {t('registry.settings')}
          </Link>
        </span>
      }
      failure={failure}
      onRetry={onRetry}
    />
  );
}
