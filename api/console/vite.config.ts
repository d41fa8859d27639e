import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

import { compressFiles, sharedFiles } from './build/files.ts';

const pages: Record<string, string> = { app: 'index.html', login: 'login.html' };
const shared = { theme: 'src/generated/theme.css', boot: 'src/boot.js' };

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
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rolldownOptions: { input: samples ? { samples: 'samples.html' } : pages },
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
