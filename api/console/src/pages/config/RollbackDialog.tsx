import type { ReactNode } from 'react';

import {
  type ConfigSaved,
  readRevisionsAfter,
  type Revision,
  rollBackConfig,
} from '../../api/queries/config';
import { useT } from '../../i18n';
import { rollbackValues } from './changed-values';
import { useConfigForm } from './config-form';
import { SaveDialog, type SavePreview } from './SaveDialog';
import { rollbackVerb } from './save-verb';

/** Effect of a rollback, and the saves since. */
interface Rollback extends SavePreview {
  newer: Revision[];
}

interface Props {
  revision: number;
  onSaved: (answer: ConfigSaved) => Promise<void>;
  onClose: () => void;
}

/** Shows what a return to a revision would do, and does it. */
export function RollbackDialog({ revision, onSaved, onClose }: Props): ReactNode {
  const t = useT();
  const { settings } = useConfigForm();
  const preview = async (signal: AbortSignal): Promise<Rollback> => {
    const [answer, newer] = await Promise.all([
      rollBackConfig(revision, { dry_run: true }, signal),
      readRevisionsAfter(revision, signal),
    ]);
    return { answer, newer };
  };
  return (
    <SaveDialog
      title={t('config.rollback.title', { revision: String(revision) })}
      previewKey={['config-rollback', revision]}
      preview={preview}
      changes={({ answer, newer }) => rollbackValues(answer, newer, settings)}
      verb={(answer) => rollbackVerb(revision, answer, t)}
      note={() => <p className="dim">{t('config.rollback.note')}</p>}
      save={(terms) => rollBackConfig(revision, terms)}
      onSaved={onSaved}
      onClose={onClose}
    />
  );
}
