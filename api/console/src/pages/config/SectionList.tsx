import { NativeSelect } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { useConfigForm } from './config-form';
import styles from './config.module.css';
import type { SettingSection } from './sections';
import { useSectionTitle } from './useSectionTitle';

interface Props {
  sections: SettingSection[];
  /** Id of the section that is shown; undefined while all are searched. */
  current: string | undefined;
}

/** The sections of the settings, with marks at those where something is unsaved or refused. */
export function SectionList({ sections, current }: Props): ReactNode {
  const t = useT();
  const navigate = useNavigate();
  const titleOf = useSectionTitle();
  const { settings, pending, errors } = useConfigForm();
  const countIn = ({ groups }: SettingSection, keys: string[]): number =>
    settings.filter(({ group, key }) => groups.includes(group) && keys.includes(key)).length;
  const all = t('config.sections.all');
  return (
    <nav className={styles.sections} aria-label={t('config.sections')}>
      <NativeSelect
        className={styles.sectionSelect}
        aria-label={t('config.sections')}
        value={current ?? ''}
        data={[
          ...(current === undefined ? [{ value: '', label: all }] : []),
          ...sections.map((section) => ({ value: section.id, label: titleOf(section) })),
        ]}
        onChange={(event) =>
          void navigate({ to: '/admin/config', search: { section: event.currentTarget.value } })
        }
      />
      <ul className={styles.sectionLinks}>
        {sections.map((section) => {
          const unsaved = countIn(section, pending.keys);
          const refused = countIn(section, Object.keys(errors));
          return (
            <li key={section.id}>
              <Link
                to="/admin/config"
                search={{ section: section.id }}
                className={styles.sectionLink}
                activeProps={{}}
                data-current={section.id === current || undefined}
                aria-current={section.id === current ? 'page' : undefined}
              >
                <span>{titleOf(section)}</span>
                {unsaved + refused > 0 && (
                  <span className={styles.count} data-refused={refused > 0 || undefined}>
                    <span aria-hidden>{refused > 0 ? refused : unsaved}</span>
                    <span className="visually-hidden">
                      {refused > 0
                        ? t('config.refused.count', { count: refused })
                        : t('config.unsaved.count', { count: unsaved })}
                    </span>
                  </span>
                )}
              </Link>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}
