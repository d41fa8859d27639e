import IconPlus from '@tabler/icons-react/icons/IconPlus';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { NEW_CONVERSATION } from '../../../api/queries/chat';
import { readOutbox } from '../../../chat/outbox';
import type { ChatOverview } from '../../../chat/protocol';
import { LinkButton } from '../../../components/LinkButton';
import { useAge } from '../../../components/useAge';
import { useT, useTranslation } from '../../../i18n';
import { exactTime } from '../../../i18n/values';
import { visibleText } from '../../../modules/visible-text';
import styles from './chat.module.css';
import { ConversationMenu } from './ConversationMenu';

interface Props {
  overview: ChatOverview;
  /** Id of the open one. */
  shown: string;
  onChoose?: () => void;
}

/** Time since a conversation was used; the clock of the service may be ahead. */
function LastUse({ at }: { at: Date }): ReactNode {
  const { language } = useTranslation();
  const age = useAge(at, true);
  if (Number.isNaN(at.getTime())) return <small />;
  return <small title={exactTime(at, language)}>{age}</small>;
}

/** The user's conversations, newest used first. */
export function ConversationList({ overview, shown, onChoose }: Props): ReactNode {
  const t = useT();
  const { conversations, left_out: leftOut } = overview;
  return (
    <nav aria-label={t('chat.conversations')} className={styles.conversations}>
      <LinkButton
        to="/manage"
        search={{ c: NEW_CONVERSATION }}
        leftSection={<IconPlus size={16} aria-hidden />}
        onClick={onChoose}
      >
        {t('chat.new')}
      </LinkButton>
      <ul>
        {conversations.map((conversation) => {
          const { id, last_used_at: used } = conversation;
          const title = visibleText(conversation.title) || t('chat.untitled');
          const at = new Date(used);
          const isUnsent = id !== shown && readOutbox(id).length > 0;
          return (
            <li key={id} className={styles.conversation} data-current={id === shown || undefined}>
              <Link
                to="/manage"
                search={{ c: id }}
                onClick={onChoose}
                aria-current={id === shown ? 'page' : undefined}
                title={title}
              >
                <span className={styles.title} dir="auto">
                  {title}
                </span>
                {isUnsent ? <small>{t('chat.unsent')}</small> : <LastUse at={at} />}
              </Link>
              <ConversationMenu conversation={conversation} title={title} />
            </li>
          );
        })}
      </ul>
      {leftOut > 0 && <small>{t('chat.left.out', { count: leftOut })}</small>}
    </nav>
  );
}
