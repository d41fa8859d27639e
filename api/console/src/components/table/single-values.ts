import type { ListControl } from './useListState';

/** Lets each filter have one value, the one chosen last: the server takes no more. */
export function withSingleValues(control: ListControl): ListControl {
  const change: ListControl['change'] = (parts, options) => {
    if (parts.filters === undefined) {
      control.change(parts, options);
      return;
    }
    const filters = Object.fromEntries(
      Object.entries(parts.filters).map(([name, values]) => [name, values.slice(-1)]),
    );
    control.change({ ...parts, filters }, options);
  };
  return { ...control, change };
}
