import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { ACTION_KEYS, type Applicable, type AskedAction, isAsked } from '../../modules/users/applicable';
import type { UserActions } from '../../modules/users/useUserActions';

interface Props {
  applicable: Applicable;
  actions: UserActions;
  onAsk: (action: AskedAction) => void;
}

/** The two actions that fit the state of a user best. */
export function UserButtons({ applicable, actions, onAsk }: Props): ReactNode {
  const t = useT();
  const { working, act } = actions;
  return applicable.buttons.map((action, at) => (
    <Button
      key={action}
      variant={at === 0 && applicable.needsAction ? 'filled' : 'default'}
      disabled={working !== undefined}
      onClick={() => (isAsked(action) ? onAsk(action) : act(action))}
    >
      {working === action ? t('preview.working') : t(ACTION_KEYS[action])}
    </Button>
  ));
}
