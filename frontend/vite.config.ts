import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// In development the API is that of a running `deskhand server`; its address can be set for another port.
const api = process.env['DESKHAND_API'] ?? 'http://127.0.0.1:2468';

export default defineConfig({
  plugins: [svelte()],
  // Vitest would take Svelte's server build without this.
  ...(process.env['VITEST'] ? { resolve: { conditions: ['browser'] } } : {}),
  build: {
    // WebKitGTK of Debian 12 is the oldest engine that shows this.
    target: 'safari16',
    // Neither data: URLs nor helper scripts: the content security policy allows files of our own only.
    assetsInlineLimit: 0,
    // One sheet for every screen: a sheet that came with the first part that needed it had every element of the page get its style
    // anew, 150 ms in the window at the end of the first turn of a long answer.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
  },
  worker: { format: 'es' },
  server: {
    host: '127.0.0.1',
    // Help has the manual in it.
    fs: { allow: ['.', '../docs'] },
    // The guard looks at Host and Origin; both are made those of the server itself.
    proxy: Object.fromEntries(
      ['/client', '/v1'].map((path) => [path, { target: api, changeOrigin: true, headers: { Origin: api } }]),
    ),
  },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.ts'],
    restoreMocks: true,
    // One of them types out a long document; a busy machine takes seven seconds for it.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Every test cleans up after itself, so that the files can share a page: that takes a third of the time.
    isolate: false,
    setupFiles: 'src/test/jsdom.ts',
    // Otherwise their order hangs on what each took the last time, on a fresh machine on nothing, and what one leaves to the next shows
    // on one of the two only.
    sequence: { shuffle: { files: true } },
  },
});
