import { type ReactNode, useState } from 'react';

import { Failure } from '../../api/failure';
import type { ConfigSaved, SaveTerms } from '../../api/queries/config';
import { ActionPreview } from '../../components/ActionPreview';
import { useT } from '../../i18n';
import { type ChangedValue, valueAfter } from './changed-values';
import { ChangeList } from './ChangeList';
import { useConfigForm } from './config-form';
import { PurgePlan } from './PurgePlan';
import { SaveEffect } from './SaveEffect';

/** Effect of a save. */
export interface SavePreview {
  answer: ConfigSaved;
}

interface Props<P extends SavePreview> {
  title: string;
  previewKey: readonly unknown[];
  preview: (signal: AbortSignal) => Promise<P>;
  changes: (preview: P) => ChangedValue[];
  verb: (answer: ConfigSaved) => string;
  /** Said beneath the changes. */
  note?: (preview: P) => ReactNode;
  save: (terms: SaveTerms) => Promise<ConfigSaved>;
  onSaved: (answer: ConfigSaved) => Promise<void>;
  /** Takes a refusal whose values have fields. */
  onRefused?: (failure: Failure) => void;
  onClose: () => void;
}

/** Dialog that shows what a save changes and whom it concerns, and saves. */
export function SaveDialog<P extends SavePreview>(props: Props<P>): ReactNode {
  const { onClose, onRefused, onSaved, save } = props;
  const t = useT();
  const { settings } = useConfigForm();
  const [forced, setForced] = useState(false);
  const act = async ({ answer }: P): Promise<void> => {
    if (answer.changed.length === 0) return;
    const confirm = answer.purge?.confirm ?? undefined;
    try {
      await onSaved(await save({ if_generation: answer.generation, confirm, force: forced || undefined }));
    } catch (thrown) {
      const failure = Failure.from(thrown);
      if (onRefused === undefined || failure.problems.length === 0) throw failure;
      onRefused(failure);
    }
  };
  return (
    <ActionPreview<P>
      opened
      size={680}
      title={props.title}
      onClose={onClose}
      previewKey={props.previewKey}
      preview={props.preview}
      verb={({ answer }) => (answer.changed.length === 0 ? t('bulk.close') : props.verb(answer))}
      danger={({ answer }) => (answer.purge?.users ?? 0) > 0}
      typedName={({ answer }) => (answer.purge?.confirm ? answer.purge.to : undefined)}
      typedHint={t('config.purge.irreversible')}
      blocked={({ answer }) => (answer.purge?.problem && !forced ? t('config.purge.blocked') : undefined)}
      act={act}
    >
      {(preview) => {
        const changes = props.changes(preview);
        return (
          <>
            {preview.answer.purge && (
              <PurgePlan
                purge={preview.answer.purge}
                retention={valueAfter(settings, changes, 'archive.retention')}
                forced={forced}
                onForce={setForced}
              />
            )}
            {preview.answer.changed.length === 0 && <p>{t('config.unchanged')}</p>}
            {preview.answer.changed.length > 0 && <ChangeList changes={changes} />}
            {props.note?.(preview)}
            {preview.answer.changed.length > 0 && (
              <SaveEffect
                answer={preview.answer}
                atOnce={valueAfter(settings, changes, 'container.max_unavailable')}
              />
            )}
          </>
        );
      }}
    </ActionPreview>
  );
}
