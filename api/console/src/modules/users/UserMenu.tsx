import { Menu } from '@mantine/core';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { ACTION_KEYS, type Applicable, type AskedAction, isAsked } from './applicable';
import styles from './users.module.css';
import type { UserActions } from './useUserActions';

interface Props {
  applicable: Applicable;
  actions: UserActions;
  onAsk: (action: AskedAction) => void;
}

/** All other actions on a user, the destructive one apart. */
export function UserMenu({ applicable, actions, onAsk }: Props): ReactNode {
  const t = useT();
  return applicable.menu.map((action) => (
    <div key={action} role="none">
      {action === 'delete' && <Menu.Divider />}
      <Menu.Item
        className={action === 'delete' ? styles.danger : undefined}
        disabled={actions.working !== undefined}
        onClick={() => (isAsked(action) ? onAsk(action) : actions.act(action))}
      >
        {t(ACTION_KEYS[action])}
      </Menu.Item>
    </div>
  ));
}
