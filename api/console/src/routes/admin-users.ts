import { createRoute, lazyRouteComponent } from '@tanstack/react-router';

import { adminRoute } from './parents';

const list = createRoute({
  getParentRoute: () => adminRoute,
  path: 'users',
  component: lazyRouteComponent(() => import('../pages/users/UsersPage'), 'UsersPage'),
});

const user = createRoute({
  getParentRoute: () => adminRoute,
  path: 'users/$name',
  component: lazyRouteComponent(() => import('../pages/users/UserPage'), 'UserPage'),
});

const overview = createRoute({
  getParentRoute: () => user,
  path: '/',
  component: lazyRouteComponent(() => import('../pages/users/tabs/OverviewTab'), 'OverviewTab'),
});

const log = createRoute({
  getParentRoute: () => user,
  path: 'log',
  component: lazyRouteComponent(() => import('../pages/users/tabs/LogTab'), 'LogTab'),
});

const events = createRoute({
  getParentRoute: () => user,
  path: 'events',
  component: lazyRouteComponent(() => import('../pages/users/tabs/EventsTab'), 'EventsTab'),
});

const skills = createRoute({
  getParentRoute: () => user,
  path: 'skills',
  component: lazyRouteComponent(() => import('../pages/users/tabs/SkillsTab'), 'SkillsTab'),
});

const channels = createRoute({
  getParentRoute: () => user,
  path: 'channels',
  component: lazyRouteComponent(() => import('../pages/users/tabs/ChannelsTab'), 'ChannelsTab'),
});

const limits = createRoute({
  getParentRoute: () => user,
  path: 'limits',
  component: lazyRouteComponent(() => import('../pages/users/tabs/LimitsTab'), 'LimitsTab'),
});

const executors = createRoute({
  getParentRoute: () => user,
  path: 'executors',
  component: lazyRouteComponent(() => import('../pages/users/tabs/ExecutorsTab'), 'ExecutorsTab'),
});

const sessions = createRoute({
  getParentRoute: () => user,
  path: 'sessions',
  component: lazyRouteComponent(() => import('../pages/users/tabs/SessionsTab'), 'SessionsTab'),
});

const audit = createRoute({
  getParentRoute: () => user,
  path: 'audit',
  component: lazyRouteComponent(() => import('../pages/users/tabs/AuditTab'), 'AuditTab'),
});

const task = createRoute({
  getParentRoute: () => adminRoute,
  path: 'tasks/$id',
  component: lazyRouteComponent(() => import('../pages/tasks/TaskPage'), 'TaskPage'),
});

/** The list of users, the pages of one user, and the page of a task. */
export const adminUserPages = [
  list,
  user.addChildren([overview, log, events, skills, channels, limits, executors, sessions, audit]),
  task,
] as const;
