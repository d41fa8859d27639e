import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useId } from 'react';

import { Failure } from '../../api/failure';
import { type AgentModel, modelQuery } from '../../api/queries/model';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { type T, useT } from '../../i18n';
import styles from './agent.module.css';
import { ModelForm } from './ModelForm';

function sayModel({ configured, provider, providers, model }: AgentModel, t: T): string {
  if (!configured) return t('model.none');
  const title = providers.find(({ id }) => id === provider)?.title;
  if (title === undefined) return t('model.by.hand', { model: model ?? '' });
  return t('model.current', { model: model ?? '', provider: title });
}

/** The model that agents use, and the form that chooses another one. */
export function ModelCard(): ReactNode {
  const t = useT();
  const id = useId();
  const { data, error, refetch } = useQuery(modelQuery);
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{t('model.title')}</h2>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!error && !data && <LoadingState rows={4} />}
      {data && <p className={styles.text}>{sayModel(data, t)}</p>}
      {data?.providers.length === 0 && <small>{t('model.no.providers')}</small>}
      {data && data.providers.length > 0 && <ModelForm stored={data} />}
    </section>
  );
}
