import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useId } from 'react';

import { Failure } from '../../../api/failure';
import { channelFieldsQuery, channelsQuery, chatAppQuery } from '../../../api/queries/own';
import type { Schemas } from '../../../api/types';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from '../manage.module.css';
import { chatAppSection, formFields, missingFields, tellingField } from './channel-fields';
import { type ChannelState, ChannelTile } from './ChannelTile';

type Channel = Schemas['AgentChannel'];

function stateOfChannel({ enabled, configured }: Channel): ChannelState {
  if (enabled) return configured ? 'on' : 'incomplete';
  return configured ? 'off' : 'unset';
}

/** Channels through which the agent is spoken to. */
export function ChannelsCard(): ReactNode {
  const t = useT();
  const id = useId();
  const { data, error, refetch } = useQuery(channelsQuery);
  const { data: fields } = useQuery(channelFieldsQuery);
  const { data: chatApp } = useQuery(chatAppQuery);
  const short = fields && chatAppSection(fields.fields);
  const extra = chatApp != null && fields !== undefined && short === undefined;
  const textOf = (channel: Channel): string => {
    const own = formFields(fields?.fields ?? [], channel.key);
    const missing = missingFields(own);
    if (missing.length > 0) return t('channel.needs', { fields: missing.join(t('list.comma')) });
    const telling = tellingField(own);
    return telling ? `${telling.label} ${visibleText(telling.value)}` : '';
  };
  const linkOf = (channel: Channel): ReactNode => {
    const begun = channel.enabled ? 'channel.complete' : 'channel.set.up';
    const text = t(channel.configured ? 'channel.change' : begun);
    const label = t('channel.link', { action: text, channel: channel.label });
    if (channel.key === short && chatApp != null && !channel.configured) {
      return (
        <Link to="/manage/chatapp" aria-label={label}>
          {text}
        </Link>
      );
    }
    return (
      <Link to="/manage/channels/$key" params={{ key: channel.key }} aria-label={label}>
        {text}
      </Link>
    );
  };
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{t('channels.title')}</h2>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingState rows={2} />}
      {data?.channels.length === 0 && !extra && <p className="dim">{t('channels.none')}</p>}
      <ul className={styles.tiles}>
        {data?.channels.map((channel) => (
          <ChannelTile
            key={channel.key}
            label={channel.label}
            state={stateOfChannel(channel)}
            text={textOf(channel)}
            link={linkOf(channel)}
          />
        ))}
        {extra && (
          <ChannelTile
            label={t('chatapp.title')}
            state={chatApp.client_id !== '' && chatApp.client_secret_set ? 'on' : 'unset'}
            text={visibleText(chatApp.client_id)}
            link={
              <Link to="/manage/chatapp">
                {t(chatApp.client_secret_set ? 'channel.change' : 'channel.set.up')}
              </Link>
            }
          />
        )}
      </ul>
    </section>
  );
}
