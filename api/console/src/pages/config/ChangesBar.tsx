import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { ErrorState } from '../../components/ErrorState';
import { useT } from '../../i18n';
import { useConfigForm } from './config-form';
import styles from './config.module.css';
import { MeanwhileNote } from './MeanwhileNote';
import type { Review } from './useReview';

/** Settings that are named. */
const MOST = 4;

/** Bar at the foot of the page while something is unsaved: what, and the way on. */
export function ChangesBar({ review }: { review: Review }): ReactNode {
  const t = useT();
  const { pending, settings, reveal, discard } = useConfigForm();
  const { keys, changes } = pending;
  if (keys.length === 0) return null;
  const named = keys.slice(0, MOST);
  const errors = Object.keys(review.errors).length;
  const isUnstored = changes.some(({ setting, kind }) => kind === 'replace' || setting.mayHoldSecrets);
  return (
    <section className={styles.bar} aria-label={t('config.unsaved')}>
      <MeanwhileNote />
      {review.failure && <ErrorState title={t('form.failed')} failure={review.failure} />}
      <div className={styles.barRow}>
        <div className="grow">
          <strong role="status">{t('config.unsaved.count', { count: keys.length })}</strong>
          {': '}
          {named.map((key, at) => (
            <span key={key}>
              {at > 0 && ', '}
              <button type="button" className={styles.link} onClick={() => reveal(key)}>
                {settings.find((setting) => setting.key === key)?.title ?? key}
              </button>
            </span>
          ))}
          {keys.length > named.length && ` ${t('bulk.more', { count: keys.length - named.length })}`}
          {errors > 0 && (
            <div className={styles.error} role="alert">
              {t('config.refused', { count: errors })}
            </div>
          )}
          {isUnstored && <small className={styles.hint}>{t('config.unsaved.secrets')}</small>}
        </div>
        <div className="row">
          <Button variant="subtle" onClick={discard} disabled={review.isChecking}>
            {t('config.discard')}
          </Button>
          <Button variant="filled" onClick={review.start} disabled={review.isChecking}>
            {review.isChecking ? t('config.checking') : t('config.review', { count: keys.length })}
          </Button>
        </div>
      </div>
    </section>
  );
}
