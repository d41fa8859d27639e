import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import type { Halt } from '../../../chat/connection';
import type { ChatInfo } from '../../../chat/protocol';
import type { Chat } from '../../../chat/useChat';
import { LinkButton } from '../../../components/LinkButton';
import states from '../../../components/states.module.css';
import { type MessageKey, type T, useT } from '../../../i18n';
import type { Tone } from '../../../modules/state';
import { useRestart } from '../useRestart';
import styles from './chat.module.css';

interface Said {
  tone: Tone;
  title: MessageKey;
  help?: string;
  /** Sentence of the service, in English. */
  message?: string;
  action?: 'resume' | 'restart' | 'agent';
}

const HALTS: Record<Halt, Said> = {
  deleted: { tone: 'off', title: 'chat.state.deleted' },
  failed: { tone: 'bad', title: 'chat.state.unkept', action: 'resume' },
  chat_off: { tone: 'off', title: 'chat.off', action: 'resume' },
  signed_out: { tone: 'off', title: 'chat.state.signed.out' },
  refused: { tone: 'bad', title: 'chat.state.refused' },
};
const REFUSALS: Record<string, MessageKey> = {
  held_elsewhere: 'chat.state.held',
  too_many_streams: 'chat.state.sockets',
  busy: 'chat.state.busy',
};

/** Finds the one thing that the reader has to know now. */
function sayState({ snapshot }: Chat, info: ChatInfo, t: T): Said | undefined {
  const { status, lost, view } = snapshot;
  if (status.halted) return HALTS[status.halted];
  const refused = status.open || status.refused === undefined ? undefined : REFUSALS[status.refused];
  if (refused) return { tone: 'warn', title: refused, action: 'resume' };
  if (lost) return { tone: 'warn', title: 'chat.state.reconnecting' };
  const { state } = view;
  const message = state?.message ?? undefined;
  const waits =
    state && state.waiting > 0 ? t('chat.state.starting.waiting', { count: state.waiting }) : undefined;
  switch (state?.agent) {
    case 'stopped':
      return { tone: 'off', title: 'chat.state.stopped', help: t('chat.state.stopped.help'), message };
    case 'failed':
      return { tone: 'bad', title: 'chat.state.failed', message, action: 'restart' };
    case 'unreachable':
      return {
        tone: 'bad',
        title: 'chat.state.unreachable',
        help: t('chat.state.unreachable.help'),
        action: 'restart',
      };
    case 'off':
      return { tone: 'off', title: 'chat.off', help: t('chat.off.text') };
    case 'unsupported':
      return { tone: 'off', title: 'chat.unsupported', help: t('chat.unsupported.text'), action: 'agent' };
    case 'starting':
      return { tone: 'wait', title: 'chat.state.starting', help: waits };
  }
  if (!info.model_configured) {
    return { tone: 'warn', title: 'chat.state.no.model', help: t('chat.state.no.model.help') };
  }
  if (state?.agent === 'connecting') return { tone: 'wait', title: 'chat.state.agent', help: waits };
  return state?.other === true ? { tone: 'wait', title: 'chat.state.other' } : undefined;
}

/** Sentence above the composer about what keeps the chat from working, with what helps. */
export function StateBanner({ chat, info }: { chat: Chat; info: ChatInfo }): ReactNode {
  const t = useT();
  const restart = useRestart();
  const said = sayState(chat, info, t);
  return (
    <div role="status">
      {said && (
        <section className={`${states.sentence ?? ''} ${styles.banner ?? ''}`} data-tone={said.tone}>
          <strong>{t(said.title)}</strong>
          {said.help !== undefined && <div>{said.help}</div>}
          {said.message !== undefined && <small lang="en">{said.message}</small>}
          {said.action === 'resume' && (
            <Button size="compact-sm" onClick={() => chat.session.resume()}>
              {t('chat.state.retry')}
            </Button>
          )}
          {said.action === 'restart' && (
            <Button size="compact-sm" disabled={restart.isPending} onClick={() => restart.mutate()}>
              {restart.isPending ? t('agent.restarting') : t('chat.state.restart')}
            </Button>
          )}
          {said.action !== undefined && said.action !== 'resume' && (
            <LinkButton to="/manage/agent" size="compact-sm">
              {t('chat.to.agent')}
            </LinkButton>
          )}
        </section>
      )}
    </div>
  );
}
