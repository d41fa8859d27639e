import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';

import { Failure } from '../../api/failure';
import { type ConfigSaved, saveConfig } from '../../api/queries/config';
import { useT } from '../../i18n';
import type { ShownSetting } from './filter-settings';
import { valuesOf } from './pending';
import { readRefusals } from './refusals';
import type { DraftControl } from './useConfigDraft';

/** The way from unsaved changes to their preview. */
export interface Review {
  /** The first preview, while its dialog is open. */
  first?: ConfigSaved;
  isChecking: boolean;
  /** A failure that belongs to no field. */
  failure?: Failure;
  /** Sentences at fields. */
  errors: Record<string, string>;
  /** Asks the server what the changes would do, and opens the dialog. */
  start: () => void;
  /** Takes a refusal of the server: its sentences go to their fields. */
  refuse: (failure: Failure) => void;
  /** Forgets what was said about the value of a setting, and a check under way. */
  forget: (key: string) => void;
  /** Forgets all that was said, and a check under way. */
  clear: () => void;
  close: () => void;
}

/** Checks unsaved changes, puts what is refused at its fields, and leads to the first. */
export function useReview(
  settings: ShownSetting[],
  { pending }: DraftControl,
  reveal: (key: string) => void,
): Review {
  const t = useT();
  const [first, setFirst] = useState<ConfigSaved>();
  const [checked, setChecked] = useState(false);
  const [refused, setRefused] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<Failure>();
  const keys = settings.map(({ key }) => key);
  const refuse = (thrown: Failure): void => {
    const { byKey, other } = readRefusals(thrown, new Set(keys));
    const [firstKey] = keys.filter((key) => byKey[key] !== undefined);
    setRefused(byKey);
    if (firstKey === undefined || other.length > 0) setFailure(thrown);
    if (firstKey !== undefined) reveal(firstKey);
  };
  const check = useMutation({
    mutationFn: (values: Record<string, unknown>) => saveConfig(values, { dry_run: true }),
  });
  const errors = { ...refused };
  if (checked) {
    for (const [key, problem] of Object.entries(pending.problems))
      errors[key] = t(problem.key, problem.values);
  }
  return {
    first,
    isChecking: check.isPending,
    failure,
    errors,
    refuse,
    start: () => {
      setChecked(true);
      setRefused({});
      setFailure(undefined);
      const unread = pending.keys.find((key) => pending.problems[key] !== undefined);
      if (unread !== undefined) {
        reveal(unread);
        return;
      }
      // These are not called any more once a change has reset the check.
      check.mutate(valuesOf(pending.changes), {
        onSuccess: setFirst,
        onError: (thrown) => refuse(Failure.from(thrown)),
      });
    },
    forget: (key) => {
      check.reset();
      setRefused((old) => Object.fromEntries(Object.entries(old).filter(([other]) => other !== key)));
      setFailure(undefined);
    },
    clear: () => {
      check.reset();
      setChecked(false);
      setRefused({});
      setFailure(undefined);
    },
    close: () => {
      setFirst(undefined);
      setChecked(false);
    },
  };
}
