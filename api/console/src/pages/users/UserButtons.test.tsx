import { fireEvent, screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';

import { renderInConsole } from '../../testing/render';
import { applicableActions } from '../../modules/users/applicable';
import { factsOfDetail } from './user-facts';
import { UserButtons } from './UserButtons';
import type { UserDetail } from './useUserDetail';

test('agent is restarted at once, but stopped only after it was asked', () => {
  const detail = { desired: { desired: 'running' }, retry: () => undefined } as unknown as UserDetail;
  const act = vi.fn();
  const onAsk = vi.fn();
  const applicable = applicableActions(factsOfDetail(detail));
  renderInConsole(
    <UserButtons applicable={applicable} actions={{ working: undefined, act }} onAsk={onAsk} />,
  );
  for (const button of screen.getAllByRole('button')) fireEvent.click(button);
  expect(act.mock.calls).toEqual([['restart']]);
  expect(onAsk.mock.calls).toEqual([['stop']]);
  expect(applicable.menu).toContain('debug');
});
