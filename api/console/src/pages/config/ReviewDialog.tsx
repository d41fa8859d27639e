import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useRef } from 'react';

import type { Failure } from '../../api/failure';
import { configQuery, type ConfigSaved, saveConfig } from '../../api/queries/config';
import { useT } from '../../i18n';
import { pendingValues } from './changed-values';
import { useConfigForm } from './config-form';
import { valuesOf } from './pending';
import { SaveDialog, type SavePreview } from './SaveDialog';
import { saveVerb } from './save-verb';

interface Props {
  /** The preview that was asked for before the dialog opened. */
  first: ConfigSaved;
  onSaved: (answer: ConfigSaved) => Promise<void>;
  onRefused: (failure: Failure) => void;
  onClose: () => void;
}

/** Shows what the unsaved changes would do, and saves them. */
export function ReviewDialog({ first, onSaved, onRefused, onClose }: Props): ReactNode {
  const t = useT();
  const { draft, pending } = useConfigForm();
  const client = useQueryClient();
  const known = useRef<ConfigSaved | undefined>(first);
  const values = valuesOf(pending.changes);
  const preview = async (signal: AbortSignal): Promise<SavePreview> => {
    const answer = known.current;
    known.current = undefined;
    if (answer !== undefined) return { answer };
    // It is asked again when something was saved meanwhile.
    await client.refetchQueries({ queryKey: configQuery.queryKey });
    return { answer: await saveConfig(values, { dry_run: true }, signal) };
  };
  return (
    <SaveDialog
      title={t('config.review.title')}
      previewKey={['config', first.generation, first.changed]}
      preview={preview}
      changes={() => pendingValues(pending.changes)}
      verb={(answer) => saveVerb(answer, t)}
      note={({ answer }) =>
        draft.generation !== undefined &&
        answer.generation > draft.generation && <p>{t('config.review.meanwhile')}</p>
      }
      save={(terms) => saveConfig(values, terms)}
      onSaved={onSaved}
      onRefused={onRefused}
      onClose={onClose}
    />
  );
}
