import { Button } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';

import type { Failure } from '../api/failure';
import { useT } from '../i18n';
import { failureText } from '../i18n/failure';
import { useReasons } from '../i18n/reasons';
import styles from './states.module.css';

interface Props {
  failure: Failure;
  /** Sentence above the reason. */
  title?: string;
  /** The reason in words that the place knows better than the failure's code. */
  text?: string;
  /** Help for the user, where the server names no remedy. */
  help?: ReactNode;
  onRetry?: () => void;
}

/** Says why something could not be shown, what helps, and tries again. */
export function ErrorState({ failure, title, text, help: known, onRetry }: Props): ReactNode {
  const t = useT();
  const explain = useReasons();
  const wait = useCountdown(failure);
  const said = text === undefined ? failureText(failure, t) : { text, lang: undefined };
  const { reason, remedy } = failure.details;
  const help = typeof reason === 'string' ? explain(reason).remedy : '';
  return (
    <div role="alert" className={styles.error}>
      <strong>{title ?? t('failure.title')}</strong>
      <div lang={said.lang}>{said.text}</div>
      {text === undefined && said.lang === undefined && failure.message !== '' && (
        <small lang="en">{failure.message}</small>
      )}
      {known !== undefined && <div>{known}</div>}
      {help !== '' && <div>{help}</div>}
      {help === '' && typeof remedy === 'string' && remedy !== '' && <div lang="en">{remedy}</div>}
      {failure.requestId !== undefined && (
        <small className="mono">
          {t('failure.reference', { code: failure.code, id: failure.requestId })}
        </small>
      )}
      {onRetry && (
        <div>
          <Button disabled={wait > 0} onClick={onRetry}>
            {wait > 0 ? t('failure.retry.in', { seconds: wait }) : t('failure.retry')}
          </Button>
        </div>
      )}
    </div>
  );
}

/** Seconds until the server wants to be asked again. */
function useCountdown(failure: Failure): number {
  const [counted, setCounted] = useState({ failure, left: Math.ceil(failure.retryAfter ?? 0) });
  const left = counted.failure === failure ? counted.left : Math.ceil(failure.retryAfter ?? 0);
  useEffect(() => {
    if (left === 0) return;
    const timer = setTimeout(() => setCounted({ failure, left: left - 1 }), 1000);
    return () => clearTimeout(timer);
  }, [failure, left]);
  return left;
}
