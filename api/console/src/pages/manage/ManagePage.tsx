import type { ReactNode } from 'react';

import { AgentCard } from './AgentCard';
import { ChannelsCard } from './channels/ChannelsCard';
import { ExecutorCard } from './connect/ExecutorCard';
import { FilesCard } from './files/FilesCard';
import styles from './manage.module.css';
import { ManageTabs } from './ManageTabs';
import { McpCard } from './mcp/McpCard';
import { MoreCard } from './MoreCard';

/** The user's page: agent, connected devices, channels, files, tools. */
export function ManagePage(): ReactNode {
  return (
    <>
      <ManageTabs />
      <AgentCard />
      <div className={styles.pair}>
        <ExecutorCard kind="browser" />
        <ExecutorCard kind="desktop" />
      </div>
      <ChannelsCard />
      <FilesCard />
      <McpCard />
      <MoreCard />
    </>
  );
}
