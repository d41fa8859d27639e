import { Link, type LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { type MessageKey, useT } from '../i18n';
import styles from './tabs.module.css';

/** Addresses of tabs with their texts. */
export type Tabs = readonly (readonly [to: NonNullable<LinkProps['to']>, text: MessageKey])[];

interface Props {
  label: string;
  tabs: Tabs;
  /** Parameters of all addresses. */
  params?: Record<string, string>;
  /** They stand above the heading. */
  isTop?: boolean;
}

/** Parts of a page, each with its own address. */
export function LinkTabs({ label, tabs, params, isTop }: Props): ReactNode {
  const t = useT();
  return (
    <nav aria-label={label} className={styles.tabs} data-top={isTop === true ? true : undefined}>
      {tabs.map(([to, text]) => (
        <Link
          key={to}
          {...({ to, params, search: {} } as LinkProps)}
          data-text={t(text)}
          activeOptions={{ exact: true, includeSearch: false }}
        >
          {t(text)}
        </Link>
      ))}
    </nav>
  );
}
