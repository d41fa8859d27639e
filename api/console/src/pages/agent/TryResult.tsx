import type { ReactNode } from 'react';

import type { ModelFault, ModelTried } from '../../api/queries/model';
import states from '../../components/states.module.css';
import { type MessageKey, useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import styles from './agent.module.css';

const FAULTS: Record<ModelFault, [title: MessageKey, help: MessageKey]> = {
  address: ['model.fault.address', 'model.fault.address.help'],
  path: ['model.fault.path', 'model.fault.path.help'],
  scheme: ['model.fault.scheme', 'model.fault.scheme.help'],
  certificate: ['model.fault.certificate', 'model.fault.certificate.help'],
  key: ['model.fault.key', 'model.fault.key.help'],
  model: ['model.fault.model', 'model.fault.model.help'],
  quota: ['model.fault.quota', 'model.fault.quota.help'],
  answer: ['model.fault.answer', 'model.fault.answer.help'],
  timeout: ['model.fault.timeout', 'model.fault.timeout.help'],
};

/** Result of a test: what is wrong, what to do, and the service's own words. */
export function TryResult({ tried }: { tried: ModelTried }): ReactNode {
  const t = useT();
  const known: [MessageKey, MessageKey] | undefined =
    tried.reason === null ? undefined : FAULTS[tried.reason];
  const message = visibleText(tried.message);
  if (tried.ok) {
    return (
      <section className={`${states.sentence ?? ''} ${styles.ok ?? ''}`}>
        <strong>{t('model.ok')}</strong>
        <small lang="en">{message}</small>
      </section>
    );
  }
  return (
    <section className={states.sentence} data-tone="bad">
      <strong lang={known ? undefined : 'en'}>{known ? t(known[0]) : message}</strong>
      <div lang={known ? undefined : 'en'}>{known ? t(known[1]) : visibleText(tried.remedy)}</div>
      {known && <small lang="en">{message}</small>}
    </section>
  );
}
