import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import { ActionPreview } from '../../components/ActionPreview';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { isLive } from '../../live/invalidate';
import { switchBody, type SwitchScope, switchTexts, switchValues } from './switches';

interface Props {
  scope: SwitchScope;
  /** Pauses; else it resumes. */
  pauses: boolean;
  onClose: () => void;
}

/** Dialog that pauses or resumes an object, a reconciler or all after it was said what that means. */
export function SwitchDialog({ scope, pauses, onClose }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const texts = switchTexts(scope, pauses);
  const values = switchValues(scope);
  const act = async (): Promise<void> => {
    await post(`/api/admin/reconcile/${pauses ? 'pause' : 'resume'}`, { ...switchBody(scope), wait: 0 });
    toasts.done(t(texts.done, values));
    void client.invalidateQueries({ predicate: isLive });
  };
  return (
    <ActionPreview
      opened
      onClose={onClose}
      title={t(texts.title, values)}
      previewKey={['switch', scope, pauses]}
      preview={() => Promise.resolve(true)}
      verb={() => t(texts.verb, values)}
      act={act}
    >
      {() => <p>{t(texts.text, values)}</p>}
    </ActionPreview>
  );
}
