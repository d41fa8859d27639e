import IconBulb from '@tabler/icons-react/icons/IconBulb';
import { memo, type ReactNode } from 'react';

import type { Entry } from '../../../chat/protocol';
import { useT, useTranslation } from '../../../i18n';
import { clockTime, exactTime } from '../../../i18n/values';
import { AgentText } from './AgentText';
import styles from './chat.module.css';
import { FailureNote, NoticeLine } from './FailureNote';
import { Folded } from './Folded';
import { SentFiles } from './SentFiles';
import { ToolCalls } from './ToolCalls';
import { MessageState, UserMessage } from './UserMessage';

interface Props {
  conversation: string;
  entry: Entry;
  /** Begin of the present day: times of other days have a date. */
  today: number;
}

/** Share of the context from which it is shown. */
const CONTEXT_SHOWN = 70;

/** One entry of a conversation. */
export const EntryRow = memo(function EntryRow({ conversation, entry, today }: Props): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const at = new Date(entry.at);
  const isKnown = !Number.isNaN(at.getTime());
  return (
    <div className={styles.entry} data-kind={entry.kind} data-id={entry.id}>
      <span className="visually-hidden">{t(entry.kind === 'user' ? 'chat.you' : 'chat.agent')}: </span>
      <EntryContent conversation={conversation} entry={entry} />
      <div className={styles.foot}>
        {isKnown && (
          <time dateTime={entry.at} title={exactTime(at, language)}>
            {clockTime(at, new Date(today), language)}
          </time>
        )}
        {entry.kind === 'answer' && entry.model !== null && <span>{entry.model}</span>}
        {entry.kind === 'answer' && (entry.used_percent ?? 0) >= CONTEXT_SHOWN && (
          <span>{t('chat.used', { percent: entry.used_percent ?? 0 })}</span>
        )}
      </div>
    </div>
  );
});

function EntryContent({ conversation, entry }: Omit<Props, 'today'>): ReactNode {
  const t = useT();
  switch (entry.kind) {
    case 'user':
      return (
        <UserMessage text={entry.text} attachments={entry.attachments}>
          <MessageState status={entry.status} />
        </UserMessage>
      );
    case 'answer':
      return <AgentText text={entry.text} />;
    case 'thought':
      return (
        <Folded
          icon={<IconBulb size={15} aria-hidden />}
          title={t(entry.streaming ? 'chat.thinking' : 'chat.thought')}
        >
          {() => <AgentText text={entry.text} />}
        </Folded>
      );
    case 'tools':
      return <ToolCalls calls={entry.calls} />;
    case 'files':
      return (
        <>
          {entry.text !== null && entry.text !== '' && <AgentText text={entry.text} />}
          <SentFiles conversation={conversation} files={entry.files} />
        </>
      );
    case 'failure':
      return <FailureNote entry={entry} />;
    case 'notice':
      return <NoticeLine entry={entry} />;
  }
}
