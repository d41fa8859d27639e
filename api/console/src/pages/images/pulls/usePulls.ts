import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';

import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { pullsQuery } from '../../../api/queries/images';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import { readDraft, storeDraft } from '../../../modules/drafts';
import { shortImage } from '../../../modules/image-name';
import { PullFollower } from './pull-follower';
import { type PullView, UNREAD_PULL } from './pull-view';
import type { Pulls } from './pulls-context';

/** Pulls whose streams this tab reads at once: a browser has few connections to a server. */
const MOST_READ = 3;
const DRAFT = 'image-pulls';

/** Ids of the first events of the pulls that this tab has requested, kept over a reload. */
function readKept(): Record<string, string> {
  return (readDraft(DRAFT) ?? {}) as Record<string, string>;
}

function keep(reference: string, first: string | undefined): void {
  const { [reference]: _, ...others } = readKept();
  const all = first === undefined ? others : { ...others, [reference]: first };
  storeDraft(DRAFT, Object.keys(all).length === 0 ? undefined : all);
}

/** Requests pulls, follows those of this tab by their streams, and reads the list of all. */
export function usePulls(): Pulls {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const { data, error } = useQuery(pullsQuery);
  const [views, setViews] = useState<Record<string, PullView>>({});
  const [cancelling, setCancelling] = useState<ReadonlySet<string>>(new Set());
  const followers = useRef(new Map<string, PullFollower>());

  const dismiss = useCallback((reference: string): void => {
    followers.current.get(reference)?.stop();
    followers.current.delete(reference);
    keep(reference, undefined);
    setViews(({ [reference]: _, ...others }) => others);
  }, []);

  const show = useCallback(
    (reference: string, view: PullView): void => {
      if (view.end === undefined) {
        setViews((all) => ({ ...all, [reference]: view }));
        return;
      }
      for (const queryKey of [['list', 'image'], ['list', 'reconcile'], ['registry']])
        void client.invalidateQueries({ queryKey });
      if ('done' in view.end) {
        toasts.done(t('pull.done', { image: shortImage(reference) }));
        dismiss(reference);
      } else {
        followers.current.delete(reference);
        keep(reference, undefined);
        setViews((all) => ({ ...all, [reference]: view }));
      }
    },
    [client, dismiss, t, toasts],
  );
  const shown = useRef(show);
  useEffect(() => {
    shown.current = show;
  }, [show]);

  const follow = useCallback((reference: string, first: string | undefined): void => {
    followers.current.get(reference)?.stop();
    const follower = new PullFollower(reference, first, {
      show: (view) => shown.current(reference, view),
      onFirst: (id) => keep(reference, id),
    });
    followers.current.set(reference, follower);
    void follower.run();
  }, []);

  useEffect(() => {
    const all = followers.current;
    for (const [reference, first] of Object.entries(readKept()).slice(0, MOST_READ)) follow(reference, first);
    return () => {
      for (const follower of all.values()) follower.stop();
      all.clear();
    };
  }, [follow]);

  const start = useCallback(
    (reference: string): void => {
      setViews((all) => ({ ...all, [reference]: UNREAD_PULL }));
      if (followers.current.size < MOST_READ) {
        follow(reference, undefined);
        return;
      }
      // Requested, and then seen in the list only.
      const requested = new PullFollower(reference, undefined, {
        show: (view) => shown.current(reference, view),
        onFirst: () => {
          requested.stop();
          setViews(({ [reference]: _, ...others }) => others);
          void client.invalidateQueries({ queryKey: pullsQuery.queryKey });
        },
      });
      void requested.run();
    },
    [client, follow],
  );

  const cancel = useCallback(
    async (reference: string): Promise<void> => {
      const image = shortImage(reference);
      setCancelling((all) => new Set([...all, reference]));
      try {
        await post('/api/admin/images/pulls/cancel', { image: reference });
        dismiss(reference);
        await client.invalidateQueries({ queryKey: pullsQuery.queryKey });
        toasts.done(t('pull.cancelled', { image }));
      } catch (thrown) {
        toasts.fail(t('pull.cancel.failed', { image }), Failure.from(thrown));
      }
      setCancelling((all) => new Set([...all].filter((one) => one !== reference)));
    },
    [client, dismiss, t, toasts],
  );

  const listed = data?.pulls;
  const failure = useMemo(() => (error ? Failure.from(error) : undefined), [error]);
  return useMemo(
    () => ({
      listed,
      failure,
      views,
      cancelling,
      start,
      cancel: (reference) => void cancel(reference),
      dismiss,
    }),
    [listed, failure, views, cancelling, start, cancel, dismiss],
  );
}
