import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

import { compressFiles, sharedFiles } from './build/files.ts';

const pages: Record<string, string> = { app: 'index.html', login: 'login.html' };
const BASE =
  /node_modules\/(react|react-dom|scheduler)\/|src\/(api\/(account|client|failure|session)|i18n\/(failure|format|language|translator)|i18n\/(en|zh)\/(errors|signin)|prefix|scheme|signin\/(Choice|keys|PasswordForm|SignInFailure|signin|Switches|useSignIn))\b/;
/** Modules of most pages behind the sign-in, one file in place of one for each component. */
const UI =
  /node_modules\/(@mantine(?!\/core\/.*\/(Autocomplete|TagsInput)\/)|@tabler|@floating-ui|@tanstack\/(?!react-virtual|virtual-core))|src\/(components\/(?!log\/|form\/)|(api|live)\/|modules\/[^/]+\.|app\/useSession|layout\/useAttention|pages\/manage\/files\/paths\b)/;
/** Pages of images and rollouts, with the fields that only they have. */
const IMAGES = /src\/pages\/(images|rollouts)\/|@mantine\/core\/.*\/components\/(Autocomplete|TagsInput)\//;
/** The settings. */
const CONFIG = /src\/pages\/config\//;
/** Parts of the pages of users, but those that bring the log or forms. */
const USERS = /src\/(pages\/(users|tasks|containers)\/(?!tabs\/(Log|Limits)Tab)|modules\/users\/)/;
/** Lists that are read only, and the pages of objects and reconcilers. */
const OBJECTS = /src\/(pages\/(objects|reconcile|superadmins|groups|skills|auth|audit)|modules\/objects)\//;
/** A user's own pages, but those that bring the chat, the log, forms or the editor. */
const MANAGE =
  /src\/pages\/(manage|initializing)\/(?!log\/|chat\/|channels\/(ChannelPage|ChatAppPage|channel-fields|useChannelSave)|files\/(codemirror|editor-theme|languages)\b)/;
/** The chat without what shows Markdown. */
const CHAT = /src\/(chat\/(?!markdown-parts)|pages\/manage\/chat\/(?!Markdown|markdown|CodeBlock))/;
const shared = { boot: 'src/boot.js', icon: 'src/icon.svg' };

export default defineConfig(({ mode }) => {
  const samples = mode === 'samples';
  return {
    base: './',
    plugins: [react(), sharedFiles(shared, samples ? '.' : undefined), ...(samples ? [] : [compressFiles()])],
    build: {
      outDir: samples ? 'dist-samples' : 'dist',
      target: 'es2022',
      manifest: 'manifest.json',
      sourcemap: false,
      assetsInlineLimit: 0,
      // One style file for all pages: fewer requests before the first content.
      cssCodeSplit: false,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rolldownOptions: {
        input: samples ? { samples: 'samples.html' } : pages,
        // One file for all that both pages need: fewer requests before the first content.
        output: {
          codeSplitting: {
            groups: [
              { name: 'base', test: BASE },
              { name: 'ui', test: UI },
              { name: 'users', test: USERS },
              { name: 'images', test: IMAGES },
              { name: 'config', test: CONFIG },
              { name: 'objects', test: OBJECTS },
              { name: 'manage', test: MANAGE },
              { name: 'chat', test: CHAT },
            ],
          },
        },
      },
    },
    worker: { format: 'es' as const },
    test: {
      environment: 'happy-dom',
      include: ['src/**/*.test.{ts,tsx}'],
      setupFiles: ['src/testing/setup.ts'],
      restoreMocks: true,
    },
  };
});
