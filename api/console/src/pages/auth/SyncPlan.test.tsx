import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';

import type { Schemas } from '../../api/types';
import { renderInConsole } from '../../testing/render';
import { SyncPlan } from './SyncPlan';

const NOTHING = {
  add: [],
  change: [],
  rename: [],
  disable: [],
  remove: [],
  add_groups: [],
  remove_groups: [],
};

test('plan names what it changes and warns of a large removal', () => {
  const plan = {
    ...NOTHING,
    added: 2,
    add: ['eve', 'mallory\u202e'],
    renamed: 1,
    rename: [{ from: 'ann', to: 'ann.jones' }],
    disabled: 30,
    disable: Array.from({ length: 30 }, (_, at) => `user${String(at)}`),
    mass_removal: { digest: 'd1', what: '30 of 40 users' },
  } as unknown as Schemas['Synced'];
  renderInConsole(<SyncPlan plan={plan} />);
  const [created, renamed, disabled] = screen.getAllByRole('listitem').map(({ textContent }) => textContent);
  expect(created).toBe('2 users are created: eve, mallory\\u202e');
  expect(renamed).toBe('1 user is renamed: ann → ann.jones');
  expect(disabled).toMatch(/^30 users are disabled: user0, .* and 10 more$/);
  expect(screen.getByText('30 of 40 users')).toBeTruthy();
});

test('plan without changes says so', () => {
  renderInConsole(<SyncPlan plan={NOTHING as unknown as Schemas['Synced']} />);
  expect(screen.queryAllByRole('listitem')).toHaveLength(0);
  expect(screen.getByText(/nothing would change/)).toBeTruthy();
});
