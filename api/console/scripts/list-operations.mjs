// Writes docs/console-operations.md: each operation of superadmins, and the pages of the console that call it.
// `--check` fails when the file is out of date.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../', import.meta.url));
const source = join(root, 'src');
const target = join(root, '../../docs/console-operations.md');

const document = JSON.parse(readFileSync(join(root, '../src/openapi/snapshots/openapi.snap.json'), 'utf8'));
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, operation]) => operation['x-admin-socket'] === true)
    .map(([method, { operationId: id, summary, tags }]) => ({ path, method, id, summary, area: tags[0] })),
);

// Of each declaration at the top of a file: the addresses in it, how they are called, and the declarations that it names.
const declarations = new Map();
const importsOf = new Map();
const isShown = (name) => /\.tsx?$/.test(name) && !/(\.test\.|\.d\.ts$)/.test(name);

function resolve(from, specifier) {
  if (!specifier.startsWith('.')) return undefined;
  const base = join(dirname(from), specifier);
  return [base, `${base}.ts`, `${base}.tsx`, join(base, 'index.ts'), join(base, 'index.tsx')].find(
    (file) => /\.tsx?$/.test(file) && existsSync(file),
  );
}

for (const name of readdirSync(source, { recursive: true })) {
  if (!isShown(name) || /^(samples|testing)\b/.test(name)) continue;
  const file = join(source, name);
  const tree = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  const imports = new Map();
  const constants = new Map(
    tree.statements
      .filter(ts.isVariableStatement)
      .flatMap(({ declarationList }) => declarationList.declarations)
      .filter(({ initializer }) => initializer && ts.isStringLiteral(initializer))
      .map(({ name: declared, initializer }) => [declared.getText(), initializer.text]),
  );
  // The address of a constant counts where the file uses it, as it is called there.
  const isLocal = ({ parent }) =>
    ts.isVariableDeclaration(parent) &&
    constants.has(parent.name.getText()) &&
    !parent.parent.parent.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
  const note = (declared, node) => {
    const facts = { file, addresses: [], names: new Set(), lazy: new Set() };
    const visit = (child) => {
      if (ts.isIdentifier(child)) facts.names.add(child.text);
      const isText = ts.isStringLiteral(child) || ts.isNoSubstitutionTemplateLiteral(child);
      const isUse = ts.isIdentifier(child) && !ts.isTemplateSpan(child.parent) && child.parent.name !== child;
      const text = isText
        ? child.text
        : ts.isTemplateExpression(child)
          ? templateText(child, constants)
          : isUse
            ? (constants.get(child.text) ?? '')
            : '';
      if (text.startsWith('/api/') && !isLocal(child))
        facts.addresses.push({ text, method: methodOf(child) });
      ts.forEachChild(child, visit);
    };
    visit(node);
    declarations.set(`${file}#${declared}`, facts);
  };
  for (const statement of tree.statements) {
    if (ts.isImportDeclaration(statement)) {
      const from = resolve(file, statement.moduleSpecifier.text);
      const bindings = statement.importClause?.namedBindings;
      if (from !== undefined && bindings && ts.isNamedImports(bindings))
        for (const one of bindings.elements)
          imports.set(one.name.text, `${from}#${(one.propertyName ?? one.name).text}`);
    } else if (ts.isVariableStatement(statement)) {
      for (const one of statement.declarationList.declarations) note(one.name.getText(), one);
    } else if (statement.name) note(statement.name.text, statement);
  }
  importsOf.set(file, imports);
}

/** The text of a template as far as it is known, with `*` for the rest. */
function templateText({ head, templateSpans }, constants) {
  const parts = templateSpans.map(
    ({ expression, literal }) => `${constants.get(expression.getText()) ?? '*'}${literal.text}`,
  );
  return head.text + parts.join('');
}

/** `post` for what a function with `post` in its name gets, or what stands in an object for one; otherwise unknown. */
function methodOf(node) {
  for (let at = node.parent; at; at = at.parent) {
    if (ts.isCallExpression(at)) {
      const called = at.expression.getText();
      if (/^(get|getRaw)\b/.test(called)) return 'get';
      if (/post/i.test(called)) return 'post';
    }
  }
  return undefined;
}

/** Adds all addresses that a declaration leads to. */
function collect(key, seen, found) {
  if (seen.has(key)) return;
  seen.add(key);
  const facts = declarations.get(key);
  if (facts === undefined) return;
  found.push(...facts.addresses);
  const imports = importsOf.get(facts.file);
  for (const name of facts.names) {
    const next = imports?.get(name) ?? `${facts.file}#${name}`;
    // A page does not call what the pages that it links to call.
    if (!/\/src\/(routes|layout)\//.test(next)) collect(next, seen, found);
  }
}

const sections = readdirSync(join(source, 'pages')).filter((name) => !/^(manage|initializing)$/.test(name));
const rooms = [
  ...sections.map((section) => [section, join(source, 'pages', section)]),
  ['frame', join(source, 'layout')],
];
const calls = rooms.map(([room, folder]) => {
  const found = [];
  const seen = new Set();
  for (const [key, facts] of declarations)
    if (!relative(folder, facts.file).startsWith('..')) collect(key, seen, found);
  return [room, found];
});

/** Tells if a segment of a path fits one with `*` for what is unknown. */
function isLike(segment, part) {
  const texts = part.split('*').map((text) => text.replace(/[^\w-]/g, '\\$&'));
  return new RegExp(`^${texts.join('.*')}$`).test(segment);
}

const matches = ({ path, method }, call) => {
  const parts = call.text.split('/');
  const own = path.split('/');
  const same =
    parts.length === own.length && parts.every((part, at) => part.startsWith('*') || isLike(own[at], part));
  return same && (call.method === undefined || call.method === method);
};
const rows = operations.map((operation) => {
  const pages = calls.filter(([, found]) => found.some((call) => matches(operation, call)));
  return { ...operation, pages: pages.map(([room]) => room) };
});
rows.sort(
  (a, b) => a.area.localeCompare(b.area) || a.path.localeCompare(b.path) || a.method.localeCompare(b.method),
);
const without = rows.filter(({ pages }) => pages.length === 0).length;
const text = [
  '# Operations of superadmins, and the pages that call them',
  '',
  `Made by \`npm run list-operations\` in \`api/console\`. ${String(rows.length - without)} of ${String(rows.length)} operations have a page.`,
  '',
  '| area | operation | request | folder of the page in `api/console/src/pages` |',
  '| --- | --- | --- | --- |',
  ...rows.map(
    ({ area, summary, method, path, pages }) =>
      `| ${area} | ${summary} | \`${method.toUpperCase()} ${path}\` | ${pages.join(', ') || '–'} |`,
  ),
  '',
].join('\n');

if (!process.argv.includes('--check')) writeFileSync(target, text);
else if (!existsSync(target) || readFileSync(target, 'utf8') !== text) {
  console.error('docs/console-operations.md is out of date: run `npm run list-operations` in api/console');
  process.exit(1);
}
