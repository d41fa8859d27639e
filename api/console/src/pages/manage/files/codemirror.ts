import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { bracketMatching, indentOnInput } from '@codemirror/language';
import { MergeView } from '@codemirror/merge';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from '@codemirror/view';

import { editorTheme } from './editor-theme';
import { loadLanguage } from './languages';

/** Extensions of the editor. */
export interface EditorOptions {
  /** Where it stands: styles of the editor are constructed sheets there, which the page's policy allows. */
  root: ShadowRoot;
  name: string;
  text: string;
  label: string;
  /** The editor's own words in the page's language. */
  phrases: Record<string, string>;
  onChange: (text: string) => void;
  onSave: () => void;
}

/** An editor on the page. */
export interface Editor {
  focus: () => void;
  destroy: () => void;
}

/** The line ends of a text: kept as they are when it is saved. */
function lineEnd(text: string): string {
  const all = text.split('\n').length - 1;
  return all > 0 && text.split('\r\n').length - 1 === all ? '\r\n' : '\n';
}

function basics({ label, name, phrases, text }: EditorOptions): Extension {
  const language = new Compartment();
  return [
    lineNumbers(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    search({ top: true }),
    keymap.of([...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
    EditorState.lineSeparator.of(lineEnd(text)),
    EditorState.phrases.of(phrases),
    EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
    EditorView.lineWrapping,
    editorTheme,
    language.of([]),
    languageOf(language, name),
  ];
}

/** Puts the highlighting in as soon as it is loaded. */
function languageOf(language: Compartment, name: string): Extension {
  let asked = false;
  return EditorView.updateListener.of(({ view }) => {
    if (asked) return;
    asked = true;
    void loadLanguage(name).then((extension) => view.dispatch({ effects: language.reconfigure(extension) }));
  });
}

function listeners({ onChange, onSave }: EditorOptions): Extension {
  return [
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onChange(update.state.sliceDoc());
    }),
    keymap.of([
      {
        key: 'Mod-s',
        run: () => {
          onSave();
          return true;
        },
      },
    ]),
  ];
}

/** Makes an editor. */
export function makeEditor(options: EditorOptions): Editor {
  const { root, text } = options;
  const state = EditorState.create({ doc: text, extensions: [listeners(options), basics(options)] });
  const view = new EditorView({ state, root, parent: root });
  view.dispatch({});
  return view;
}

/** Makes two editors beside each other: `other` can be read only. */
export function makeComparison(options: EditorOptions & { other: string }): Editor {
  const { root, text, other } = options;
  const fixed = [EditorState.readOnly.of(true), EditorView.editable.of(false)];
  const merge = new MergeView({
    a: { doc: other, extensions: [fixed, basics({ ...options, text: other })] },
    b: { doc: text, extensions: [listeners(options), basics(options)] },
    parent: root,
    root,
    collapseUnchanged: { margin: 3, minSize: 6 },
    highlightChanges: true,
    gutter: true,
  });
  for (const view of [merge.a, merge.b]) view.dispatch({});
  return { focus: () => merge.b.focus(), destroy: () => merge.destroy() };
}
