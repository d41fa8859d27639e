import { createRoute, lazyRouteComponent } from '@tanstack/react-router';

import { adminRoute } from './parents';

const images = createRoute({
  getParentRoute: () => adminRoute,
  path: 'images',
  component: lazyRouteComponent(() => import('../pages/images/ImagesPage'), 'ImagesPage'),
});

const engine = createRoute({
  getParentRoute: () => images,
  path: '/',
  component: lazyRouteComponent(() => import('../pages/images/EngineTab'), 'EngineTab'),
});

const registry = createRoute({
  getParentRoute: () => images,
  path: 'registry',
  component: lazyRouteComponent(() => import('../pages/images/RegistryTab'), 'RegistryTab'),
});

const pulls = createRoute({
  getParentRoute: () => images,
  path: 'pulls',
  component: lazyRouteComponent(() => import('../pages/images/PullsTab'), 'PullsTab'),
});

const candidates = createRoute({
  getParentRoute: () => images,
  path: 'candidates',
  component: lazyRouteComponent(() => import('../pages/images/CandidatesTab'), 'CandidatesTab'),
});

const rollouts = createRoute({
  getParentRoute: () => adminRoute,
  path: 'rollouts',
  component: lazyRouteComponent(() => import('../pages/rollouts/RolloutsPage'), 'RolloutsPage'),
});

const newRollout = createRoute({
  getParentRoute: () => adminRoute,
  path: 'rollouts/new',
  component: lazyRouteComponent(() => import('../pages/rollouts/new/NewRolloutPage'), 'NewRolloutPage'),
});

const rollout = createRoute({
  getParentRoute: () => adminRoute,
  path: 'rollouts/$id',
  component: lazyRouteComponent(() => import('../pages/rollouts/RolloutPage'), 'RolloutPage'),
});

/** The pages of images, and of rollouts that move users to them. */
export const adminImagePages = [
  images.addChildren([engine, registry, pulls, candidates]),
  rollouts,
  newRollout,
  rollout,
] as const;
