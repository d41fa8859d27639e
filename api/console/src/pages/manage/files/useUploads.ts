import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useSyncExternalStore } from 'react';

import { Failure } from '../../../api/failure';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import { Arrivals } from './arrivals';
import type { Picked } from './picked-files';
import type { Question } from './questions';
import { isOpen, type Upload } from './upload-queue';
import { queue, questions, upload } from './uploads';

/** Files on their way to the server. */
export interface Uploads {
  uploads: readonly Upload[];
  question: Question | undefined;
}

/** Shows the queue of this tab, and has folders read again when files have arrived. */
export function useUploads(): Uploads {
  const client = useQueryClient();
  const uploads = useSyncExternalStore(queue.subscribe, queue.list);
  const question = useSyncExternalStore(questions.subscribe, questions.first);
  const done = uploads.filter(({ state }) => state === 'done').length;
  const ended = !uploads.some(isOpen);
  const arrivals = useMemo(
    () => new Arrivals(() => void client.invalidateQueries({ queryKey: ['files', 'folder'] })),
    [client],
  );
  useEffect(() => {
    if (done > 0) arrivals.note(ended);
  }, [arrivals, done, ended]);
  useEffect(() => () => arrivals.stop(), [arrivals]);
  return { uploads, question };
}

/** Returns the function that uploads what was chosen or dropped into a folder. */
export function useStartUpload(folder: string): (picked: Picked | Promise<Picked>) => void {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  return (picked) => {
    upload(picked, folder, client).catch((thrown: unknown) =>
      toasts.fail(t('upload.failed'), Failure.from(thrown)),
    );
  };
}
