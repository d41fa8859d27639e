import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { ActionPreview } from '../../components/ActionPreview';
import { useT } from '../../i18n';
import { Warnings } from './Warnings';

interface Props {
  preview: Schemas['ConfigSaved'];
  onClose: () => void;
  onSave: () => Promise<void>;
}

/** Says which agents restart before the model is saved. */
export function SaveModel({ preview, onClose, onSave }: Props): ReactNode {
  const t = useT();
  return (
    <ActionPreview
      opened
      onClose={onClose}
      title={t('model.preview')}
      previewKey={['agent-model', preview.generation, preview.restarts]}
      preview={() => Promise.resolve(preview)}
      verb={() => t('model.preview.verb')}
      act={onSave}
    >
      {({ changed, restarts, warnings = [] }) => (
        <>
          <p>
            {changed.length === 0
              ? t('model.preview.unchanged')
              : t('model.preview.restarts', { count: restarts })}
          </p>
          <Warnings title={t('model.preview.warnings')} warnings={warnings} />
        </>
      )}
    </ActionPreview>
  );
}
