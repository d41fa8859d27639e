import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { objectEventsQuery } from '../../api/queries/objects';
import type { Described } from '../../api/queries/users';
import { DetailCard } from '../../components/DetailCard';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { visibleText } from '../visible-text';
import styles from './objects.module.css';

/** The newest events of an object, with a link to all. */
export function EventsCard({
  object: { object, kind, name },
}: {
  object: Pick<Described, 'object' | 'kind' | 'name'>;
}): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(objectEventsQuery(kind, name));
  const all = (
    <Link to="/admin/events" search={{ object } as never}>
      {t('object.events.all', { count: data?.total ?? 0 })}
    </Link>
  );
  return (
    <DetailCard title={t('section.events')} aside={data !== undefined && data.total > 0 ? all : undefined}>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingState rows={3} />}
      {data?.events.length === 0 && <p className="dim">{t('object.events.none')}</p>}
      {data && data.events.length > 0 && (
        <ul className={styles.events}>
          {data.events.map(({ id, last_at: at, count, reason, message }) => (
            <li key={id}>
              <small>
                <Time at={at} />
                {count > 1 && ` ${t('events.times', { count })}`}
              </small>
              <span>
                <code>{reason}</code> <span lang="en">{visibleText(message)}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </DetailCard>
  );
}
