import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';

import { Failure } from '../../api/failure';
import { groupsQuery, tagsQuery } from '../../api/queries/users';
import { DialogFrame } from '../../components/DialogFrame';
import dialog from '../../components/dialog.module.css';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { useT } from '../../i18n';
import type { BulkAction } from './bulk';
import { BULK_TEXTS } from './bulk-texts';

interface Props {
  action: BulkAction;
  onChoose: (goal: string) => void;
  onClose: () => void;
}

/** Dialog that asks for the image or the group that an action leads to. */
export function GoalDialog({ action, onChoose, onClose }: Props): ReactNode {
  const t = useT();
  const ofImage = action === 'move-image';
  const groups = useQuery({ ...groupsQuery, enabled: !ofImage });
  const tags = useQuery({ ...tagsQuery, enabled: ofImage });
  const [goal, setGoal] = useState<string>();
  const { error, isPending, refetch } = ofImage ? tags : groups;
  const local = groups.data?.groups.filter(({ source }) => source === 'local').map(({ name }) => name);
  const options = (ofImage ? tags.data?.tags : local) ?? [];
  const chosen = (goal === '' ? undefined : goal) ?? options[0] ?? '';
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (chosen.trim() !== '') onChoose(chosen.trim());
  };
  return (
    <DialogFrame opened title={t(BULK_TEXTS[action].button)} onClose={onClose}>
      <form onSubmit={submit} className="stack">
        {isPending && <LoadingState rows={2} />}
        {error && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
        {options.length > 0 && (
          <NativeSelect
            label={t(ofImage ? 'users.image' : 'users.group')}
            data={options}
            value={options.includes(chosen) ? chosen : options[0]}
            onChange={(event) => setGoal(event.currentTarget.value)}
          />
        )}
        {ofImage && (
          <TextInput
            label={t('users.image.other')}
            description={t('users.image.other.hint')}
            value={goal !== undefined && !options.includes(goal) ? goal : ''}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setGoal(event.currentTarget.value)}
          />
        )}
        {!ofImage && !isPending && !error && options.length === 0 && <p>{t('users.groups.none')}</p>}
        <div className={dialog.buttons}>
          <Button onClick={onClose}>{t('preview.cancel')}</Button>
          <Button type="submit" variant="filled" disabled={chosen.trim() === ''}>
            {t('bulk.preview')}
          </Button>
        </div>
      </form>
    </DialogFrame>
  );
}
