({ selector, values }) => ({ selected: choose(one(selector), values) })
