import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../../api/failure';
import { chatQuery, NEW_CONVERSATION } from '../../../api/queries/chat';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { LinkButton } from '../../../components/LinkButton';
import { LoadingState } from '../../../components/LoadingState';
import { useT } from '../../../i18n';
import { ManageTabs } from '../ManageTabs';
import { ChatFrame } from './ChatFrame';

/** The user's first page: talk to the agent. */
export function ChatPage(): ReactNode {
  const t = useT();
  const { c }: { c?: unknown } = useSearch({ strict: false });
  const { data, error, refetch } = useQuery(chatQuery);
  const state = data?.chat.state;
  const newest = data?.conversations[0]?.id ?? NEW_CONVERSATION;
  const shown = typeof c === 'string' && c !== '' ? c : newest;
  return (
    <>
      <ManageTabs />
      <h1 className="visually-hidden">{t('chat.title')}</h1>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!error && !data && (
        <div className="card">
          <LoadingState rows={8} />
        </div>
      )}
      {data && state !== 'on' && (
        <div className="card">
          <EmptyState
            title={t(state === 'off' ? 'chat.off' : 'chat.unsupported')}
            text={t(state === 'off' ? 'chat.off.text' : 'chat.unsupported.text')}
            action={<LinkButton to="/manage/agent">{t('chat.to.agent')}</LinkButton>}
          />
        </div>
      )}
      {data && state === 'on' && <ChatFrame overview={data} shown={shown} isChosen={c === shown} />}
    </>
  );
}
