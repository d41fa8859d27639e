import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const token = (name: string): string => `var(--ay-${name})`;

const looks = EditorView.theme({
  '&': { height: '100%', color: token('ink'), backgroundColor: token('panel'), fontSize: '12.5px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: token('mono'), lineHeight: '1.6' },
  '.cm-content': { caretColor: token('ink') },
  '.cm-cursor': { borderLeftColor: token('ink') },
  '.cm-gutters': {
    backgroundColor: token('panel'),
    color: token('dim'),
    borderRight: `1px solid ${token('line')}`,
  },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: token('hover') },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: token('soft'),
  },
  '.cm-searchMatch': { backgroundColor: token('mark'), color: token('ink') },
  '.cm-searchMatch-selected': { outline: `2px solid ${token('accent')}` },
  '.cm-panels': { backgroundColor: token('code'), color: token('ink') },
  '.cm-panels.cm-panels-top': { borderBottom: `1px solid ${token('line')}` },
  '.cm-panel.cm-search': { padding: '8px 12px', fontSize: '13px' },
  '.cm-panel.cm-search label': { fontSize: '13px' },
  '.cm-panel.cm-search [name=close]': { color: token('ink'), fontSize: '18px', padding: '2px 8px' },
  '.cm-textfield::placeholder': { color: token('dim'), opacity: '1' },
  '.cm-textfield': {
    fontSize: '13px',
    borderRadius: '5px',
    backgroundColor: token('panel'),
    color: token('ink'),
    border: `1px solid ${token('field-line')}`,
  },
  '.cm-button': {
    fontSize: '13px',
    borderRadius: '5px',
    backgroundImage: 'none',
    backgroundColor: token('panel'),
    color: token('ink'),
    border: `1px solid ${token('field-line')}`,
  },
  '.cm-changedLine': { backgroundColor: `${token('warn-bg')} !important` },
  '.cm-changedText': { background: `${token('mark')} !important`, color: token('ink') },
  '.cm-collapsedLines': { background: token('code'), color: token('dim') },
});

const colours = HighlightStyle.define([
  { tag: [tags.comment, tags.meta, tags.processingInstruction], color: token('dim') },
  { tag: [tags.keyword, tags.tagName, tags.heading], color: token('accent'), fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string), tags.url], color: token('ok') },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: token('warn') },
  {
    tag: [tags.propertyName, tags.attributeName, tags.definition(tags.variableName)],
    color: token('wait'),
  },
  { tag: tags.invalid, color: token('bad') },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: tags.strong, fontWeight: '700' },
  { tag: tags.link, textDecoration: 'underline' },
]);

/** Look of the editor, by the tokens of the console: they reach into the shadow root. */
export const editorTheme: Extension = [looks, syntaxHighlighting(colours)];
