// Large pages are read in slices: between them the tab answers its user, and when the budget is spent the script ends with what it has.
const SLICE = 500, BUDGET = 3000;
const KEPT = Symbol.for('agentyard.slices');
// Number of elements that a script has visited: it yields once for each, and receives true once the budget is spent.
let visited = 0;
const kept = () => globalThis[KEPT] ??= new Map();
const keep = (token, slice) => {
  // Calls that were given up leave theirs behind.
  if (kept().size >= 20) kept().delete(kept().keys().next().value);
  kept().set(token, slice);
};
const drive = (made, token) => {
  if (typeof made?.next !== 'function') return tell(() => ({ ok: made }));
  let spent = 0;
  const slice = () => tell(() => {
    kept().delete(token);
    const begun = performance.now();
    for (;;) {
      const took = performance.now() - begun;
      const { done, value } = made.next(spent + took >= BUDGET);
      if (done) return { ok: value };
      visited += 1;
      if (took < SLICE || spent + took >= BUDGET) continue;
      spent += took;
      keep(token, slice);
      return { later: true };
    }
  });
  return slice();
};
