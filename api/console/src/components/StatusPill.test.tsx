import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';

import { MANUAL } from '../modules/reasons';
import { shownState } from '../modules/state';
import { renderInConsole } from '../testing/render';
import { StatusPill } from './StatusPill';

test('object that waits names what it waits for', () => {
  renderInConsole(
    <StatusPill
      state={shownState({ status: 'False', reason: 'ConfigPending', waits_for: 'engine/local' })}
    />,
  );
  expect(screen.getByText('Waiting for the engine')).toBeTruthy();
});

test('unknown is never shown as ready or stopped', () => {
  for (const reason of ['Running', 'Stopped', 'EngineUnavailable', 'Converged'] as const) {
    expect(shownState({ status: 'Unknown', reason }).tone).toBe('unknown');
  }
});

test('what needs manual action is never shown as under way', () => {
  for (const reason of MANUAL)
    expect(['wait', 'ok']).not.toContain(shownState({ status: 'False', reason }).tone);
});
