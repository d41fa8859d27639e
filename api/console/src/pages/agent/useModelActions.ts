import { useMutation, type UseMutationResult, useQueryClient } from '@tanstack/react-query';

import { post } from '../../api/client';
import { MODEL_PATH, type ModelForm, modelQuery, type ModelTried } from '../../api/queries/model';
import type { Schemas } from '../../api/types';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { ownUrl } from '../../prefix';

/** What can be done with a choice of a model. */
export interface ModelActions {
  tried: UseMutationResult<ModelTried, Error, ModelForm>;
  /** Asks what a save would change. */
  check: UseMutationResult<Schemas['ConfigSaved'], Error, ModelForm>;
  save: (form: ModelForm, generation: number) => Promise<void>;
}

/** Tries, checks and saves a model. */
export function useModelActions(): ModelActions {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  const tried = useMutation({
    mutationFn: (form: ModelForm) => post<ModelTried>('/api/admin/agent/model/try', { ...form }),
  });
  const check = useMutation({
    mutationFn: (form: ModelForm) => post<Schemas['ConfigSaved']>(MODEL_PATH, { ...form, dry_run: true }),
  });
  const save = async (form: ModelForm, generation: number): Promise<void> => {
    const body = { ...form, if_generation: generation };
    const { task_id: task } = await post<Schemas['ConfigSaved']>(MODEL_PATH, body);
    const link = task && { href: ownUrl(`/admin/tasks/${task}`), text: t('model.saved.task') };
    toasts.done(t('model.saved', { model: form.model }), link || undefined);
    await client.invalidateQueries({ queryKey: modelQuery.queryKey });
  };
  return { tried, check, save };
}
