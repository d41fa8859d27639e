import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { post } from '../../api/client';
import type { Schemas } from '../../api/types';
import { ActionPreview } from '../../components/ActionPreview';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { ownUrl } from '../../prefix';
import { type BulkAction, type BulkTarget, previewedScope } from './bulk';
import { BULK_TEXTS } from './bulk-texts';
import { BulkEffect } from './BulkEffect';
import { GoalDialog } from './GoalDialog';

interface Props {
  action: BulkAction;
  target: BulkTarget;
  /** Has to be typed before users are deleted. */
  typedName?: string;
  onClose: () => void;
  /** Called with the task, if there is one. */
  onDone?: (task: string | undefined) => void;
}

/** Dialog of an action on users: asks where to, shows what will happen, then starts the task. */
export function BulkDialog({ action, target, typedName, onClose, onDone }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const [goal, setGoal] = useState<string>();
  const text = BULK_TEXTS[action];
  const needsGoal = action === 'move-image' || action.endsWith('-group');
  if (needsGoal && goal === undefined)
    return <GoalDialog action={action} onChoose={setGoal} onClose={onClose} />;
  const goalField = action === 'move-image' ? 'image' : 'group';
  const what = { action, ...(needsGoal ? { [goalField]: goal } : {}) };
  const body = { ...what, ...target };
  const act = async (preview: Schemas['UsersChanged']): Promise<void> => {
    if (preview.total === 0) return;
    const request = { ...what, ...previewedScope(target, preview), wait: 0 };
    const answer = await post<Schemas['UsersChanged']>('/api/admin/users/bulk', request);
    const said = t(text.verb, { count: answer.total, goal: goal ?? '' });
    const link = { href: ownUrl(`/admin/tasks/${answer.task_id ?? ''}`), text: t('bulk.show.task') };
    toasts.done(t('bulk.requested', { action: said }), answer.task_id ? link : undefined);
    void client.invalidateQueries({ queryKey: ['list', 'user'] });
    onDone?.(answer.task_id ?? undefined);
  };
  return (
    <ActionPreview<Schemas['UsersChanged']>
      opened
      onClose={onClose}
      title={t(text.button)}
      previewKey={['bulk', body]}
      preview={(signal) => post('/api/admin/users/bulk', { ...body, dry_run: true }, { signal })}
      verb={({ total }) => (total === 0 ? t('bulk.close') : t(text.verb, { count: total, goal: goal ?? '' }))}
      danger={action === 'delete'}
      typedName={action === 'delete' ? typedName : undefined}
      act={act}
    >
      {(answer) => <BulkEffect answer={answer} goal={goal ?? ''} />}
    </ActionPreview>
  );
}
