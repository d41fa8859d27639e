import { Button } from '@mantine/core';
import { Outlet } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import { CommandLine } from '../../components/CommandLine';
import { LinkButton } from '../../components/LinkButton';
import { useT } from '../../i18n';
import styles from './images.module.css';
import { ImageTabs } from './ImageTabs';
import { NewestSentence } from './NewestSentence';
import { PullCards } from './pulls/PullCards';
import { PullDialog } from './pulls/PullDialog';
import { PullsContext } from './pulls/pulls-context';
import { usePulls } from './pulls/usePulls';

const COMMANDS = [
  'agentyard image list',
  'agentyard image pull IMAGE',
  'agentyard image delete IMAGE',
  'agentyard rollout start IMAGE --all',
];

/** Images: those of the engine, those of the registry, what is being pulled, who has an older one. */
export function ImagesPage(): ReactNode {
  const t = useT();
  const pulls = usePulls();
  const [asking, setAsking] = useState(false);
  return (
    <PullsContext value={pulls}>
      <div className={styles.title}>
        <div className="grow">
          <h1>{t('section.images')}</h1>
          <NewestSentence />
        </div>
        <div className={styles.buttons}>
          <Button onClick={() => setAsking(true)}>{t('pull.title')}…</Button>
          <LinkButton to="/admin/rollouts/new">{t('rollout.new')}</LinkButton>
        </div>
      </div>
      <PullCards />
      <ImageTabs />
      <Outlet />
      <div className={styles.command}>
        <CommandLine commands={COMMANDS} />
      </div>
      {asking && <PullDialog onClose={() => setAsking(false)} />}
    </PullsContext>
  );
}
