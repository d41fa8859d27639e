import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Summary } from '../../api/queries/summary';
import detail from '../../components/detail.module.css';
import { Bytes } from '../../components/Bytes';
import { type Fact, FactList } from '../../components/FactList';
import { TonePill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import { Rich, useT, useTranslation } from '../../i18n';
import { takenTime } from '../../modules/human-time';
import { visibleText } from '../../modules/visible-text';
import styles from './dashboard.module.css';

const DATABASES: Record<Summary['database']['kind'], string> = { sqlite: 'SQLite', postgresql: 'PostgreSQL' };

/** The service itself: engine, database, leader, disk, queue, directory and version. */
export function ServiceCard({ summary }: { summary: Summary }): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const { engine, database, leader, disk, queue, last_sync: sync, version } = summary;
  const facts: Fact[] = [
    [
      t('service.engine'),
      <>
        <TonePill tone={engine.available ? 'ok' : 'bad'}>
          {t(engine.available ? 'service.engine.there' : 'service.engine.away')}
        </TonePill>{' '}
        <small lang="en">{visibleText(engine.message)}</small>
      </>,
    ],
    [t('service.database'), DATABASES[database.kind]],
    [
      t('service.leader'),
      leader.leading
        ? t('service.leader.this')
        : leader.holder
          ? t('service.leader.other', { name: visibleText(leader.holder) })
          : t('service.leader.none'),
    ],
    [
      t('service.disk'),
      disk && (
        <Rich
          k="service.disk.free"
          values={{
            free: <Bytes key="free" value={disk.free} />,
            total: <Bytes key="total" value={disk.total} />,
          }}
        />
      ),
    ],
    [
      t('service.queue'),
      queue.waiting === 0
        ? t('service.queue.empty')
        : t('service.queue.waiting', {
            count: queue.waiting,
            time: takenTime((queue.oldest_wait_ms ?? 0) / 1000, language),
          }),
    ],
    [
      t('service.sync'),
      sync && (
        <>
          <TonePill tone={sync.ready ? 'ok' : 'warn'}>
            {t(sync.ready ? 'service.sync.ready' : 'service.sync.held')}
          </TonePill>{' '}
          {sync.at && <Time at={sync.at} />}
        </>
      ),
    ],
    [t('service.version'), version],
  ];
  return (
    <section className={`card ${detail.card ?? ''}`} aria-labelledby="service">
      <h2 id="service">{t('service.title')}</h2>
      <FactList facts={facts} />
      <Link to="/admin/reconcile" className={styles.more}>
        {t('service.more')}
      </Link>
    </section>
  );
}
