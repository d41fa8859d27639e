import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router';

import { cleanPath, isInTrash } from '../pages/manage/files/paths';
import { userRoute } from './parents';

const initializing = createRoute({
  getParentRoute: () => userRoute,
  path: '/initializing',
  component: lazyRouteComponent(() => import('../pages/initializing/InitializingPage'), 'InitializingPage'),
});

const chat = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage',
  /** `c`: id of the open conversation. */
  validateSearch: (search: { c?: string }): { c?: string } => search,
  component: lazyRouteComponent(() => import('../pages/manage/chat/ChatPage'), 'ChatPage'),
});

const manage = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/agent',
  component: lazyRouteComponent(() => import('../pages/manage/ManagePage'), 'ManagePage'),
});

const log = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/log',
  component: lazyRouteComponent(() => import('../pages/manage/log/LogPage'), 'LogPage'),
});

/** Query of the pages of files. */
interface FileSearch {
  path?: string;
  page?: string;
  search?: string;
  sort?: string;
}

/** Leads from an address in the trash to its page, where everything can be restored. */
function leaveTrash({ search: { path } }: { search: FileSearch }): void {
  const folder = typeof path === 'string' ? cleanPath(path) : undefined;
  if (folder !== undefined && isInTrash(folder))
    redirect({ to: '/manage/files/trash', replace: true, throw: true });
}

const files = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/files',
  validateSearch: (search: FileSearch): FileSearch => search,
  beforeLoad: leaveTrash,
  component: lazyRouteComponent(() => import('../pages/manage/files/FilesPage'), 'FilesPage'),
});

const openFile = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/files/open',
  validateSearch: (search: FileSearch): FileSearch => search,
  beforeLoad: leaveTrash,
  component: lazyRouteComponent(() => import('../pages/manage/files/OpenPage'), 'OpenPage'),
});

const trash = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/files/trash',
  component: lazyRouteComponent(() => import('../pages/manage/files/TrashPage'), 'TrashPage'),
});

const channel = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/channels/$key',
  component: lazyRouteComponent(() => import('../pages/manage/channels/ChannelPage'), 'ChannelPage'),
});

const chatApp = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/chatapp',
  component: lazyRouteComponent(() => import('../pages/manage/channels/ChatAppPage'), 'ChatAppPage'),
});

const connect = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/connect',
  component: lazyRouteComponent(() => import('../pages/manage/connect/ConnectPage'), 'ConnectPage'),
});

const cookies = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/cookies',
  component: lazyRouteComponent(() => import('../pages/manage/CookiesPage'), 'CookiesPage'),
});

const skills = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/skills',
  component: lazyRouteComponent(() => import('../pages/manage/SkillsPage'), 'SkillsPage'),
});

const account = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage/account',
  component: lazyRouteComponent(() => import('../pages/manage/account/AccountPage'), 'AccountPage'),
});

/** A user's own pages. */
export const userPages = [
  initializing,
  chat,
  manage,
  log,
  files,
  openFile,
  trash,
  channel,
  chatApp,
  connect,
  cookies,
  skills,
  account,
] as const;
