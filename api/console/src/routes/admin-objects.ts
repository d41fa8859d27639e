import { createRoute, lazyRouteComponent } from '@tanstack/react-router';

import { adminRoute } from './parents';

const reconcile = createRoute({
  getParentRoute: () => adminRoute,
  path: 'reconcile',
  component: lazyRouteComponent(() => import('../pages/reconcile/ReconcilePage'), 'ReconcilePage'),
});

const objects = createRoute({
  getParentRoute: () => adminRoute,
  path: 'reconcile/objects',
  staticData: { listed: 'objects' },
  component: lazyRouteComponent(() => import('../pages/objects/ObjectsPage'), 'ObjectsPage'),
});

const object = createRoute({
  getParentRoute: () => adminRoute,
  path: 'reconcile/$kind/$name',
  component: lazyRouteComponent(() => import('../pages/reconcile/ObjectPage'), 'ObjectPage'),
});

const containers = createRoute({
  getParentRoute: () => adminRoute,
  path: 'containers',
  component: lazyRouteComponent(() => import('../pages/containers/ContainersPage'), 'ContainersPage'),
});

const superadmins = createRoute({
  getParentRoute: () => adminRoute,
  path: 'superadmins',
  component: lazyRouteComponent(() => import('../pages/superadmins/SuperadminsPage'), 'SuperadminsPage'),
});

const superadmin = createRoute({
  getParentRoute: () => adminRoute,
  path: 'superadmins/$name',
  component: lazyRouteComponent(() => import('../pages/superadmins/SuperadminPage'), 'SuperadminPage'),
});

const group = createRoute({
  getParentRoute: () => adminRoute,
  path: 'groups/$name',
  component: lazyRouteComponent(() => import('../pages/groups/GroupPage'), 'GroupPage'),
});

const skills = createRoute({
  getParentRoute: () => adminRoute,
  path: 'skills',
  staticData: { listed: 'skills' },
  component: lazyRouteComponent(() => import('../pages/skills/SkillsPage'), 'SkillsPage'),
});

const skill = createRoute({
  getParentRoute: () => adminRoute,
  path: 'skills/$name',
  component: lazyRouteComponent(() => import('../pages/skills/SkillPage'), 'SkillPage'),
});

const audit = createRoute({
  getParentRoute: () => adminRoute,
  path: 'audit',
  staticData: { listed: 'audit' },
  component: lazyRouteComponent(() => import('../pages/audit/AuditPage'), 'AuditPage'),
});

const auth = createRoute({
  getParentRoute: () => adminRoute,
  path: 'auth',
  component: lazyRouteComponent(() => import('../pages/auth/AuthPage'), 'AuthPage'),
});

/** The agents, the administrators, the reconcilers, the list of all objects, and the page of any object. */
export const adminObjectPages = [
  containers,
  superadmins,
  superadmin,
  group,
  skills,
  skill,
  audit,
  auth,
  reconcile,
  objects,
  object,
] as const;
