import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { useT } from '../i18n';
import styles from './layout.module.css';
import { GROUPS, type Section, SECTIONS } from './sections';
import { useAttention } from './useAttention';

const GROUP_KEYS = {
  people: 'group.people',
  agents: 'group.agents',
  access: 'group.access',
  operations: 'group.operations',
} as const;

/** The administrator's menu: all sections that have a page, in their groups. */
export function SectionMenu({ onChoose }: { onChoose?: () => void }): ReactNode {
  const t = useT();
  const attention = useAttention();
  const entry = (section: Section): ReactNode => {
    const count = attention[section.counts ?? ''] ?? 0;
    return (
      <li key={section.id}>
        <Link to={`/admin/${section.id}` as '/admin/dashboard'} className={styles.item} onClick={onChoose}>
          {t(section.label)}
          {count > 0 && (
            <span className={styles.count}>
              <span aria-hidden>{count}</span>
              <span className="visually-hidden">{t('layout.attention', { count })}</span>
            </span>
          )}
        </Link>
      </li>
    );
  };
  return (
    <nav aria-label={t('layout.menu')}>
      {GROUPS.map((group) => {
        const sections = SECTIONS.filter((section) => section.group === group);
        if (sections.length === 0) return null;
        return (
          <div key={group}>
            {group !== '' && <div className={styles.group}>{t(GROUP_KEYS[group])}</div>}
            <ul className={styles.items}>{sections.map(entry)}</ul>
          </div>
        );
      })}
    </nav>
  );
}
