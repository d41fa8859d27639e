import { Button, Progress } from '@mantine/core';
import { type ReactNode, useId } from 'react';

import { Failure } from '../../../api/failure';
import { Bytes } from '../../../components/Bytes';
import { ErrorState } from '../../../components/ErrorState';
import { Time } from '../../../components/Time';
import { Rich, useT } from '../../../i18n';
import { useReasons } from '../../../i18n/reasons';
import { shortImage } from '../../../modules/image-name';
import { visibleText } from '../../../modules/visible-text';
import styles from '../images.module.css';
import { type OpenPull, pullPercent } from './open-pulls';
import { PullLayers } from './PullLayers';
import { usePullsOfPage } from './pulls-context';

/** A pull: how far the whole and each layer are, or why it failed. It can be left and cancelled. */
export function PullCard({ pull }: { pull: OpenPull }): ReactNode {
  const t = useT();
  const id = useId();
  const explain = useReasons();
  const pulls = usePullsOfPage();
  const { reference, listed, view } = pull;
  const image = shortImage(reference);
  const { end } = view ?? {};
  if (end !== undefined && !('done' in end)) {
    const failure = 'failure' in end ? end.failure : new Failure(200, 'unexpected', end.error);
    return (
      <section className={styles.pull} aria-label={t('pull.failed', { image })}>
        <ErrorState title={t('pull.failed', { image })} failure={failure} />
        <div className="row">
          <Button onClick={() => pulls.start(reference)}>{t('pull.again', { image })}</Button>
          <Button variant="subtle" onClick={() => pulls.dismiss(reference)}>
            {t('pull.dismiss')}
          </Button>
        </div>
      </section>
    );
  }
  const percent = pullPercent(pull);
  const { bytes, bytes_total: total, state, message, started_at: since } = listed ?? {};
  const waits = percent === undefined && state && state !== 'ImagePulling' && state !== 'Progressing';
  return (
    <section className={`card ${styles.pull ?? ''}`} aria-labelledby={id}>
      <div className="row">
        <h2 id={id} className="grow">
          {percent === undefined ? t('pull.waiting', { image }) : t('pull.running', { image, percent })}
        </h2>
        <Button
          size="compact-sm"
          disabled={pulls.cancelling.has(reference)}
          onClick={() => pulls.cancel(reference)}
        >
          {t(pulls.cancelling.has(reference) ? 'pull.cancelling' : 'pull.cancel', { image })}
        </Button>
      </div>
      <Progress value={percent ?? 0} aria-label={t('pull.progress', { image })} />
      <small>
        <code>{reference}</code>
        {typeof bytes === 'number' && typeof total === 'number' && total > 0 && (
          <>
            {' · '}
            <Rich
              k="pull.bytes"
              values={{
                done: <Bytes key="done" value={bytes} />,
                total: <Bytes key="total" value={total} />,
              }}
            />
          </>
        )}
        {since && (
          <>
            {' · '}
            <Rich k="pull.since" values={{ time: <Time key="time" at={since} /> }} />
          </>
        )}
      </small>
      {waits && (
        <div>
          {explain(state).title}
          {message && <small lang="en"> {visibleText(message)}</small>}
        </div>
      )}
      {view && view.layers.length > 0 && <PullLayers image={image} layers={view.layers} />}
      <small>{t('pull.note')}</small>
    </section>
  );
}
