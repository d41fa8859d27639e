import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../../api/failure';
import { channelFieldsQuery, channelsQuery, chatAppQuery } from '../../../api/queries/own';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { FieldForm } from '../../../components/form/FieldForm';
import type { FormField } from '../../../components/form/fields';
import { LoadingState } from '../../../components/LoadingState';
import { useT } from '../../../i18n';
import { SubPage } from '../SubPage';
import { chatAppSection } from './channel-fields';
import { useChannelSave } from './useChannelSave';

/** The short form of the chat-app channel: ID and secret, which switch it on. */
export function ChatAppPage(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(chatAppQuery);
  const { data: all } = useQuery(channelFieldsQuery);
  const { data: channels } = useQuery(channelsQuery);
  const save = useChannelSave();
  const key = all && chatAppSection(all.fields);
  const label = channels?.channels.find((channel) => channel.key === key)?.label ?? t('chatapp.title');
  const set = data?.client_id !== undefined && data.client_id !== '';
  const fields: FormField[] = [
    { key: 'client_id', label: t('chatapp.id'), type: 'text', required: true, set, value: data?.client_id },
    {
      key: 'client_secret',
      label: t('chatapp.secret'),
      type: 'password',
      required: true,
      set: data?.client_secret_set === true,
    },
  ];
  // The ID is always sent, a secret that was not touched never.
  const send = (values: Record<string, unknown>): Promise<void> =>
    save('/api/chatapp', { client_id: data?.client_id ?? '', ...values }, label);
  return (
    <SubPage title={label} text={t('chatapp.text')}>
      {error && data === undefined && (
        <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />
      )}
      {data === undefined && !error && <LoadingState rows={3} />}
      {data === null && (
        <div className="card">
          <EmptyState title={t('channel.unknown')} text={t('channel.unknown.text')} />
        </div>
      )}
      {data && (
        <div className="card stack">
          <FieldForm name="chat-app" fields={fields} saveLabel={t('channel.save')} onSave={send} />
          {key !== undefined && (
            <Link to="/manage/channels/$key" params={{ key }}>
              {t('chatapp.all')}
            </Link>
          )}
        </div>
      )}
    </SubPage>
  );
}
