import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import { packagesInBundle } from './packages-in-bundle.ts';

const packages = packagesInBundle();

// One bundle with relative addresses: it works at '/', under any sub-path and from a plain file server.
export default defineConfig({
  base: './',
  plugins: [svelte(), packages.page],
  build: {
    outDir: '../src/bindscope/web/static',
    emptyOutDir: true,
    target: 'es2022',
    reportCompressedSize: true,
  },
  worker: { format: 'es', plugins: () => [packages.worker] }, // the engine of a static copy
  server: { proxy: { '/api': 'http://127.0.0.1:8420' } },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
