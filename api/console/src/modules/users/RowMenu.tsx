import { ActionIcon, Menu } from '@mantine/core';
import IconDots from '@tabler/icons-react/icons/IconDots';
import { type ReactNode, useState } from 'react';

import type { UserRow } from '../../api/queries/users';
import { useT } from '../../i18n';
import { applicableActions, type AskedAction, factsOfRow } from './applicable';
import { UserDialogs } from './UserDialogs';
import { UserMenu } from './UserMenu';
import { useUserActions } from './useUserActions';

/** All actions on a user, as a menu in the row of a list. */
export function RowMenu({ user }: { user: UserRow }): ReactNode {
  const t = useT();
  const { username: name } = user;
  const actions = useUserActions(name, user.health.object);
  const [asked, setAsked] = useState<AskedAction>();
  const applicable = applicableActions(factsOfRow(user));
  const { buttons, menu } = applicable;
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            size={24}
            aria-label={t('object.more', { name })}
            loading={actions.working !== undefined}
          >
            <IconDots size={16} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <UserMenu
            applicable={{ ...applicable, menu: [...buttons, ...menu] }}
            actions={actions}
            onAsk={setAsked}
          />
        </Menu.Dropdown>
      </Menu>
      <UserDialogs name={name} action={asked} onClose={() => setAsked(undefined)} />
    </>
  );
}
