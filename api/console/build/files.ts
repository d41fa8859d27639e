import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

/** Mark that the server replaces by the path under which the console is served. */
const PREFIX = '{{prefix}}';
const TEXT = new Set(['.css', '.html', '.js', '.json', '.svg', '.txt']);

const KEYS = ['boot', 'icon'] as const;
type Key = (typeof KEYS)[number];

/** Emits files that both pages load as they are, outside of the module graph, and links them from each page. */
export function sharedFiles(files: Record<Key, string>, prefix: string = PREFIX): Plugin {
  const names: Record<string, string> = {};
  let outDir = '';
  const emitted = (key: Key): string => {
    const content = readFileSync(files[key]);
    const hash = createHash('sha256').update(content).digest('base64url').slice(0, 8);
    return `assets/${key}-${hash}${extname(files[key])}`;
  };
  return {
    name: 'agentyard-shared-files',
    apply: 'build',
    configResolved(config) {
      outDir = config.build.outDir;
    },
    buildStart() {
      for (const key of KEYS) {
        names[key] = emitted(key);
        this.emitFile({ type: 'asset', fileName: names[key], source: readFileSync(files[key]) });
      }
    },
    transformIndexHtml: {
      order: 'post',
      handler(html) {
        const tags =
          `<link rel="icon" href="${prefix}/${names.icon ?? ''}">\n    ` +
          `<script src="${prefix}/${names.boot ?? ''}"></script>\n    `;
        return html.replaceAll('"./assets/', `"${prefix}/assets/`).replace('<title>', `${tags}<title>`);
      },
    },
    closeBundle() {
      const path = join(outDir, 'manifest.json');
      const manifest = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
      for (const [key, file] of Object.entries(names)) {
        manifest[`src/${key}${extname(file)}`] = { file, src: `src/${key}${extname(file)}` };
      }
      writeFileSync(path, JSON.stringify(manifest, null, 1));
    },
  };
}

/** Writes `<file>.br` and `<file>.gz` beside every text file of the output. */
export function compressFiles(): Plugin {
  let outDir = '';
  return {
    name: 'agentyard-compress',
    apply: 'build',
    configResolved(config) {
      outDir = config.build.outDir;
    },
    closeBundle: {
      order: 'post',
      sequential: true,
      handler() {
        for (const folder of [outDir, join(outDir, 'assets')]) {
          for (const name of readdirSync(folder)) {
            if (TEXT.has(extname(name)) && name !== 'manifest.json') compress(join(folder, name));
          }
        }
      },
    },
  };
}

function compress(path: string): void {
  const content = readFileSync(path);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 11,
    [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
  };
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params }));
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
}
