import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';

import { theme } from '../theme';
import { renderInConsole } from '../testing/render';
import { DesiredObserved } from './DesiredObserved';

test('table and its headings say what they are for', () => {
  const rows = [{ label: 'Image', desired: '1.3', observed: '1.2', differs: true }];
  renderInConsole(<DesiredObserved label="Desired and observed" rows={rows} />, theme);
  expect(screen.getByRole('table', { name: 'Desired and observed' })).toBeTruthy();
  const scopes = [...document.querySelectorAll('th')].map(({ scope }) => scope);
  expect(scopes).toEqual(['col', 'col', 'col', 'row']);
});
