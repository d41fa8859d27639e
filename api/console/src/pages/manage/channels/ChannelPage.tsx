import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../../api/failure';
import { channelFieldsQuery, channelsQuery } from '../../../api/queries/own';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { FieldForm } from '../../../components/form/FieldForm';
import { LoadingState } from '../../../components/LoadingState';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import { SubPage } from '../SubPage';
import { formFields } from './channel-fields';
import { useChannelSave } from './useChannelSave';

/** The form of a channel. */
export function ChannelPage(): ReactNode {
  const t = useT();
  const { key = '' } = useParams({ strict: false });
  const { data, error, refetch } = useQuery(channelFieldsQuery);
  const { data: channels } = useQuery(channelsQuery);
  const save = useChannelSave();
  const section = data?.sections?.find((one) => one.key === key);
  const label = visibleText(
    channels?.channels.find((channel) => channel.key === key)?.label ?? section?.label ?? key,
  );
  const fields = formFields(data?.fields ?? [], key);
  return (
    <SubPage title={label} text={t('channel.text')}>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingState rows={5} />}
      {data && (
        <div className="card stack">
          {section?.help && <p lang="en">{visibleText(section.help)}</p>}
          {fields.length === 0 ? (
            <EmptyState title={t('channel.unknown')} text={t('channel.unknown.text')} />
          ) : (
            <FieldForm
              key={key}
              name={`channel-${key}`}
              fields={fields}
              saveLabel={t('channel.save')}
              onSave={(values) => save('/api/agent/config-fields', { section: key, values }, label)}
            />
          )}
        </div>
      )}
    </SubPage>
  );
}
