import { Button } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useId, useState } from 'react';

import { Failure } from '../api/failure';
import { useT } from '../i18n';
import { DialogFrame } from './DialogFrame';
import dialog from './dialog.module.css';
import { ErrorState } from './ErrorState';
import { LoadingState } from './LoadingState';
import { TypedName } from './TypedName';

interface Props<P> {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** Key of the query of the preview. */
  previewKey: readonly unknown[];
  /** Asks the server what would happen (`dry_run`). */
  preview: (signal: AbortSignal) => Promise<P>;
  /** Effects, in sentences. */
  children: (preview: P) => ReactNode;
  /** The verb with its object: "Restart 12 agents"; undefined when it cannot be done. */
  verb: (preview: P) => string | undefined;
  /** Something is lost by it. */
  danger?: boolean;
  /** Has to be typed: only for what cannot be undone. */
  typedName?: string;
  act: (preview: P) => Promise<void>;
}

/** Returns true for an action that was refused because the preview no longer holds. */
function isOutdated(thrown: unknown): boolean {
  return thrown instanceof Failure && thrown.code === 'changed_meanwhile';
}

/** Dialog that shows what an action will do before it is done. */
export function ActionPreview<P>(props: Props<P>): ReactNode {
  const { act, danger = false, onClose, opened, title, typedName } = props;
  const t = useT();
  const [typed, setTyped] = useState('');
  const reasonId = useId();
  const query = useQuery({
    queryKey: ['preview', ...props.previewKey],
    queryFn: ({ signal }) => props.preview(signal),
    enabled: opened,
    gcTime: 0,
    staleTime: 0,
  });
  const close = (): void => {
    setTyped('');
    action.reset();
    onClose();
  };
  const action = useMutation({
    mutationFn: act,
    onSuccess: close,
    onError: (thrown) => {
      if (isOutdated(thrown)) void query.refetch();
    },
  });
  const { data } = query;
  const verb = data === undefined ? undefined : props.verb(data);
  const missing = typedName !== undefined && typed !== typedName;
  return (
    <DialogFrame opened={opened} title={title} onClose={action.isPending ? undefined : close} size={520}>
      {query.isPending && <LoadingState rows={3} />}
      {query.error && <ErrorState failure={Failure.from(query.error)} onRetry={() => void query.refetch()} />}
      {data !== undefined && props.children(data)}
      {verb !== undefined && typedName !== undefined && (
        <TypedName name={typedName} value={typed} onChange={setTyped} hintId={reasonId} />
      )}
      {isOutdated(action.error) && <p role="alert">{t('preview.changed')}</p>}
      {action.error && !isOutdated(action.error) && (
        <ErrorState title={t('preview.failed')} failure={Failure.from(action.error)} />
      )}
      <div className={dialog.buttons}>
        <Button onClick={close} disabled={action.isPending}>
          {t(data !== undefined && verb === undefined ? 'dialog.close' : 'preview.cancel')}
        </Button>
        {data !== undefined && verb !== undefined && (
          <Button
            variant="filled"
            color={danger ? 'bad' : 'accent'}
            disabled={missing || action.isPending || query.isFetching}
            aria-describedby={missing ? reasonId : undefined}
            onClick={() => action.mutate(data)}
          >
            {action.isPending ? t('preview.working') : verb}
          </Button>
        )}
      </div>
    </DialogFrame>
  );
}
