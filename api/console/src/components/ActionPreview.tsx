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
  danger?: boolean | ((preview: P) => boolean);
  /** Has to be typed: only for what cannot be undone. */
  typedName?: string | ((preview: P) => string | undefined);
  /** Loss that cannot be undone; without it, the account. */
  typedHint?: string;
  /** Reason for which it cannot be done yet. */
  blocked?: (preview: P) => string | undefined;
  size?: number;
  act: (preview: P) => Promise<void>;
}

const OUTDATED = new Set([
  'changed_meanwhile',
  'stale_generation',
  'confirmation_required',
  'auth_test_failed',
]);

/** Returns true for an action that was refused because the preview no longer holds. */
function isOutdated(thrown: unknown): boolean {
  return thrown instanceof Failure && OUTDATED.has(thrown.code);
}

/** Dialog that shows what an action will do before it is done. */
export function ActionPreview<P>(props: Props<P>): ReactNode {
  const { act, onClose, opened, size = 520, title } = props;
  const t = useT();
  const [typed, setTyped] = useState('');
  const reasonId = useId();
  const blockId = useId();
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
  const name = props.typedName;
  const typedName = typeof name === 'function' ? data && name(data) : name;
  const missing = typedName !== undefined && typed !== typedName;
  const danger = typeof props.danger === 'function' ? data && props.danger(data) : props.danger;
  const blocked = data && props.blocked?.(data);
  return (
    <DialogFrame opened={opened} title={title} onClose={action.isPending ? undefined : close} size={size}>
      {query.isPending && <LoadingState rows={3} />}
      {query.error && <ErrorState failure={Failure.from(query.error)} onRetry={() => void query.refetch()} />}
      {data !== undefined && props.children(data)}
      {verb !== undefined && typedName !== undefined && (
        <TypedName
          name={typedName}
          value={typed}
          onChange={setTyped}
          hintId={reasonId}
          hint={props.typedHint}
        />
      )}
      {blocked !== undefined && <small id={blockId}>{blocked}</small>}
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
            disabled={missing || blocked !== undefined || action.isPending || query.isFetching}
            aria-describedby={blocked !== undefined ? blockId : missing ? reasonId : undefined}
            onClick={() => action.mutate(data)}
          >
            {action.isPending ? t('preview.working') : verb}
          </Button>
        )}
      </div>
    </DialogFrame>
  );
}
