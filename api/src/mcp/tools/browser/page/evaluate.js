(code, evaluate) => {
  const notes = [];
  let wrong;
  // Nothing of it runs: what is thrown first ends it, and what cannot be compiled ends before.
  const compiles = (source) => {
    try { evaluate('throw 0;\n' + source); } catch (error) {
      if (error === 0) return true;
      if (error?.name !== 'SyntaxError') throw error;
      wrong ??= error;
    }
    return false;
  };
  const describe = (node) => (node.nodeType === 1 ? node.cloneNode(false).outerHTML : node.data ?? node.nodeName ?? '').slice(0, 200);
  const above = [];
  // JSON has no place for these.
  const plain = function (key, it) {
    // Past the `toJSON` methods that pages give to lists and texts.
    if (Array.isArray(this[key]) || Object(this[key]) !== this[key]) it = this[key];
    if (typeof it === 'string') return it.toWellFormed ? it.toWellFormed() : it;
    if (typeof it === 'number') return Number.isFinite(it) ? it : String(it);
    if (['bigint', 'function', 'symbol'].includes(typeof it)) return String(it).slice(0, 200);
    if (it === null || typeof it !== 'object') return it;
    if (it === globalThis) return '[window]';
    if (typeof it.nodeType === 'number' && typeof it.nodeName === 'string') return describe(it);
    if (it instanceof Error) return it.name + ': ' + it.message;
    if (['Map', 'Set', 'NodeList', 'HTMLCollection'].includes(Object.prototype.toString.call(it).slice(8, -1))) return [...it];
    while (above.length && above.at(-1) !== this) above.pop();
    if (above.includes(it)) return '[circular]';
    above.push(it);
    return it;
  };
  const told = (value) => {
    if (value === undefined) notes.push('the value of the script is undefined');
    return JSON.stringify({ ok: { value: value ?? null, notes } }, plain);
  };
  const failed = (error) => {
    const said = error?.message === undefined ? String(error) : (error.name ?? 'Error') + ': ' + error.message;
    return JSON.stringify({ failed: said }, plain);
  };
  try {
    const text = code.trim().replace(/[;\s]+$/, '');
    const value = '(\n' + text + '\n)', body = '() {\n' + code + '\n})()', later = '(async () => ' + value + ')()';
    // An object in braces would be a block, and a function without a name is no statement.
    const expression = /^\{[^]*\}$|^(async\s+)?function\s*\*?\s*\([^]*\}$/.test(text);
    let result;
    if (expression && compiles(value)) result = evaluate(value);
    else if (compiles(code)) result = evaluate(code);
    else if (compiles('(function ' + body)) result = evaluate('(function ' + body);
    else if (compiles(later)) result = evaluate(later);
    else if (compiles('(async function ' + body)) {
      if (!/\breturn\b/.test(code)) notes.push('a script of several statements with await has the value that it returns: add return');
      result = evaluate('(async function ' + body);
    } else throw wrong;
    if (typeof result === 'function' && /^((async\s+)?function\s*\*?\s*\(|(async\s*)?\([^)]*\)\s*=>|(async\s+)?[\w$]+\s*=>)/.test(text)) {
      notes.push('the script is a function, which was called without arguments');
      result = result();
    }
    return typeof result?.then === 'function' ? Promise.resolve(result).then(told).catch(failed) : told(result);
  } catch (error) { return failed(error); }
}
