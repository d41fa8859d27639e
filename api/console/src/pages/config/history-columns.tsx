import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';

import type { Revision } from '../../api/queries/config';
import { Actor } from '../../components/Actor';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import type { T } from '../../i18n';
import { BriefChanges } from './BriefChanges';
import type { ConfigForm } from './config-form';
import styles from './config.module.css';

/** Columns of the history. */
export function historyColumns(
  t: T,
  { settings, generation, rollBack }: Pick<ConfigForm, 'settings' | 'generation' | 'rollBack'>,
): Column<Revision>[] {
  return [
    {
      id: 'revision',
      header: t('config.history.revision'),
      short: true,
      cell: ({ revision, actor, at }) => (
        <>
          <Link
            to="/admin/config/history"
            search={((old: object) => ({ ...old, revision: String(revision) })) as never}
            resetScroll={false}
            aria-label={t('config.history.open', { revision: String(revision) })}
          >
            {revision}
          </Link>
          <small className={styles.narrowOnly}>
            <Actor name={actor} /> <Time at={at} />
          </small>
        </>
      ),
    },
    { id: 'at', header: t('list.time'), drop: 1, cell: ({ at }) => <Time at={at} as="exact" /> },
    {
      id: 'actor',
      header: t('audit.actor'),
      drop: 1,
      short: true,
      cell: ({ actor }) => <Actor name={actor} />,
    },
    {
      id: 'changes',
      header: t('config.changes'),
      cell: (revision) => <BriefChanges revision={revision} settings={settings} />,
    },
    {
      id: 'act',
      header: t('config.history.way.back'),
      drop: 2,
      short: true,
      cell: ({ revision }) =>
        revision === generation ? (
          <span className="dim">{t('config.history.current')}</span>
        ) : (
          <Button
            size="compact-xs"
            aria-label={t('config.rollback.button', { revision: String(revision) })}
            onClick={() => rollBack(revision)}
          >
            {t('config.history.this')}
          </Button>
        ),
    },
  ];
}
