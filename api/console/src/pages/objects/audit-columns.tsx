import type { Schemas } from '../../api/types';
import { Actor } from '../../components/Actor';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import type { T } from '../../i18n';
import { ObjectLinks } from '../../modules/objects/ObjectLinks';
import { visibleText } from '../../modules/visible-text';
import { AuditEntryButton } from './AuditEntryButton';
import { FilterLink } from './FilterLink';
import styles from './objects.module.css';

/** Columns of the audit trail. */
export function auditColumns(t: T): Column<Schemas['AuditEntry']>[] {
  return [
    {
      id: 'time',
      header: t('list.time'),
      cell: ({ at, count }) => (
        <>
          <Time at={at} as="exact" />
          {count > 1 && <small> {t('events.times', { count })}</small>}
        </>
      ),
    },
    {
      id: 'actor',
      header: t('audit.actor'),
      short: true,
      cell: ({ actor }) => (
        <FilterLink to="/admin/audit" filter={{ actor }}>
          <Actor name={actor} />
        </FilterLink>
      ),
    },
    {
      id: 'action',
      header: t('audit.action'),
      short: true,
      cell: ({ action }) => (
        <FilterLink to="/admin/audit" filter={{ action }}>
          <code>{action}</code>
        </FilterLink>
      ),
    },
    {
      id: 'object',
      header: t('list.object'),
      drop: 2,
      cell: ({ object }) => <ObjectLinks objects={object} />,
    },
    { id: 'outcome', header: t('audit.outcome'), drop: 1, short: true, cell: ({ outcome }) => outcome },
    {
      id: 'detail',
      header: t('audit.detail'),
      drop: 3,
      cell: ({ detail }) => (
        <span lang="en" className={styles.message} title={detail}>
          {visibleText(detail)}
        </span>
      ),
    },
    {
      id: 'entry',
      header: t('files.actions'),
      hidesHeader: true,
      numeric: true,
      cell: (entry) => <AuditEntryButton entry={entry} />,
    },
  ];
}
