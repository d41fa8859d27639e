import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import type { Rollout } from '../../api/queries/config';
import { keys } from '../../api/keys';
import { ActionPreview } from '../../components/ActionPreview';
import { useT } from '../../i18n';
import { NameLinks } from './NameLinks';
import { revisionOf } from './rollout-words';

interface Props {
  rollout: Rollout;
  /** Users whose agents are not ready with the settings. */
  failed: string[];
  onClose: () => void;
}

/** Says whom a rollout of settings leaves out when it goes on, and resumes it. */
export function ResumeDialog({ rollout, failed, onClose }: Props): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const { id, progress, reference } = rollout;
  const left = progress.pending + progress.running;
  const resume = async (): Promise<void> => {
    await post('/api/admin/images/rollouts/resume', { id });
    await client.invalidateQueries({ queryKey: keys.reconcile });
  };
  return (
    <ActionPreview
      opened
      onClose={onClose}
      title={t('config.rollout.resume')}
      previewKey={['config-resume', id]}
      preview={() => Promise.resolve(true)}
      verb={() => t('config.rollout.resume')}
      act={resume}
    >
      {() => (
        <>
          <p>
            {t('config.rollout.resume.left', { count: left, revision: String(revisionOf(reference) ?? '') })}
          </p>
          {failed.length > 0 && (
            <p>
              {t('config.rollout.resume.out', { count: failed.length })}{' '}
              <NameLinks names={failed} total={failed.length} />
            </p>
          )}
        </>
      )}
    </ActionPreview>
  );
}
