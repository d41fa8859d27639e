import { Button, Menu } from '@mantine/core';
import IconChevronDown from '@tabler/icons-react/icons/IconChevronDown';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import type { BulkAction } from './bulk';
import { BULK_TEXTS } from './bulk-texts';

const SHOWN: BulkAction[] = ['restart', 'stop', 'move-image'];
const MORE: BulkAction[] = ['start', 'add-to-group', 'remove-from-group', 'enable', 'disable'];

/** Buttons of the actions on the chosen users; each shows what it will do first. */
export function BulkActions({ onChoose }: { onChoose: (action: BulkAction) => void }): ReactNode {
  const t = useT();
  return (
    <>
      {SHOWN.map((action) => (
        <Button key={action} size="compact-sm" onClick={() => onChoose(action)}>
          {t(BULK_TEXTS[action].button)}…
        </Button>
      ))}
      <Menu position="bottom-start">
        <Menu.Target>
          <Button size="compact-sm" rightSection={<IconChevronDown size={14} aria-hidden />}>
            {t('users.more')}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {MORE.map((action) => (
            <Menu.Item key={action} onClick={() => onChoose(action)}>
              {t(BULK_TEXTS[action].button)}…
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <Button size="compact-sm" color="bad" onClick={() => onChoose('delete')}>
        {t('users.delete')}…
      </Button>
    </>
  );
}
