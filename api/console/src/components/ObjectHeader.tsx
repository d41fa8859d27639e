import { ActionIcon, Menu } from '@mantine/core';
import IconDots from '@tabler/icons-react/icons/IconDots';
import type { ReactNode } from 'react';

import { useT } from '../i18n';
import type { ShownState } from '../modules/state';
import styles from './object.module.css';
import { StatusPill } from './StatusPill';

interface Props {
  /** Links to what this belongs to. */
  crumbs?: ReactNode;
  name: string;
  state?: ShownState;
  /** At most two buttons. */
  actions?: ReactNode;
  /** Further actions, as items of a menu. */
  menu?: ReactNode;
}

/** Head of an object's page: where it is, its name, its state, what can be done. */
export function ObjectHeader({ crumbs, name, state, actions, menu }: Props): ReactNode {
  const t = useT();
  return (
    <header className={styles.header}>
      {crumbs !== undefined && <small className={styles.crumbs}>{crumbs}</small>}
      <div className="row">
        <h1 className={styles.name}>{name}</h1>
        {state && <StatusPill state={state} />}
        <span className="grow" />
        <div className={styles.actions}>
          {actions}
          {menu !== undefined && (
            <Menu position="bottom-end">
              <Menu.Target>
                <ActionIcon variant="default" size={34} aria-label={t('object.more', { name })}>
                  <IconDots size={18} aria-hidden />
                </ActionIcon>
              </Menu.Target>
              <Menu.Dropdown>{menu}</Menu.Dropdown>
            </Menu>
          )}
        </div>
      </div>
    </header>
  );
}
