import { Outlet, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import type { ConfigSaved } from '../../api/queries/config';
import { useT } from '../../i18n';
import { useLastTask } from '../../modules/useLastTask';
import { ChangesBar } from './ChangesBar';
import { type ConfigForm, ConfigFormContext } from './config-form';
import { ConfigTabs } from './ConfigTabs';
import { LastChange } from './LastChange';
import { ModeStrip } from './ModeStrip';
import { ReviewDialog } from './ReviewDialog';
import { RollbackDialog } from './RollbackDialog';
import { RolloutStrip } from './RolloutStrip';
import { sectionOfKey } from './sections';
import { useConfigDraft } from './useConfigDraft';
import { useReview } from './useReview';
import { useSaved } from './useSaved';
import type { LoadedSettings } from './useSettings';

/** Frame of the settings and their history: unsaved changes, their preview, and the progress of what was saved. */
export function ConfigFrame({ settings, names, generation }: LoadedSettings): ReactNode {
  const t = useT();
  const navigate = useNavigate();
  const control = useConfigDraft(settings, generation);
  const [revealed, setRevealed] = useState(0);
  const [revision, setRevision] = useState<number>();
  const rollout = useLastTask('config-rollout');
  const purge = useLastTask('config-purge');
  const [saves, setSaves] = useState(0);
  const follow = useSaved(rollout, purge);
  const saved = async (answer: ConfigSaved): Promise<void> => {
    await follow(answer);
    setSaves((count) => count + 1);
  };
  const reveal = (key: string): void => {
    setRevealed((count) => count + 1);
    void navigate({
      to: '/admin/config',
      search: { section: sectionOfKey(key), key },
      replace: true,
      resetScroll: false,
    });
  };
  const review = useReview(settings, control, reveal);
  const form: ConfigForm = {
    ...control,
    change: (setting, entry) => {
      review.forget(setting.key);
      control.change(setting, entry);
    },
    changeSecret: (setting, entry) => {
      review.forget(setting.key);
      control.changeSecret(setting, entry);
    },
    drop: (key) => {
      review.forget(key);
      control.drop(key);
    },
    discard: () => {
      review.clear();
      control.discard();
    },
    settings,
    names,
    generation,
    errors: review.errors,
    review: review.start,
    reveal,
    revealed,
    rollBack: setRevision,
    saves,
  };
  const changed = settings.filter(({ isDefault }) => !isDefault).length;
  return (
    <ConfigFormContext value={form}>
      <div className="stack">
        <div>
          <h1>{t('section.config')}</h1>
          <small>
            {t('config.sentence', { total: settings.length, changed })} <LastChange />
          </small>
        </div>
        <ConfigTabs />
        <RolloutStrip {...rollout} />
        <ModeStrip {...purge} />
        <Outlet />
        <ChangesBar review={review} />
      </div>
      {review.first && (
        <ReviewDialog
          first={review.first}
          onSaved={async (answer) => {
            // The fields keep what was typed until they show it as stored.
            control.rebase(answer.generation);
            await saved(answer);
            control.discard();
          }}
          onRefused={review.refuse}
          onClose={review.close}
        />
      )}
      {revision !== undefined && (
        <RollbackDialog revision={revision} onSaved={saved} onClose={() => setRevision(undefined)} />
      )}
    </ConfigFormContext>
  );
}
