import { ActionIcon, Menu } from '@mantine/core';
import IconDots from '@tabler/icons-react/icons/IconDots';
import { type ReactNode, useState } from 'react';

import { exportUrl } from '../../../chat/api';
import type { Conversation } from '../../../chat/protocol';
import { useT } from '../../../i18n';
import { DeleteConversation } from './DeleteConversation';
import { RenameConversation } from './RenameConversation';

interface Props {
  conversation: Conversation;
  title: string;
}

/** What can be done with a conversation. */
export function ConversationMenu({ conversation, title }: Props): ReactNode {
  const t = useT();
  const [dialog, setDialog] = useState<'rename' | 'delete'>();
  const close = (): void => setDialog(undefined);
  const { id } = conversation;
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="md" aria-label={t('object.more', { name: title })}>
            <IconDots size={16} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setDialog('rename')}>{t('chat.rename')}</Menu.Item>
          <Menu.Item component="a" href={exportUrl(id, 'markdown')} download>
            {t('chat.export.markdown')}
          </Menu.Item>
          <Menu.Item component="a" href={exportUrl(id, 'json')} download>
            {t('chat.export.json')}
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item color="bad" onClick={() => setDialog('delete')}>
            {t('chat.delete')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {dialog === 'rename' && <RenameConversation conversation={conversation} onClose={close} />}
      {dialog === 'delete' && <DeleteConversation id={id} title={title} onClose={close} />}
    </>
  );
}
