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
    modulePreload: { polyfill: false },
  },
  server: {
    host: '127.0.0.1',
    proxy: { '/client': { target: api, changeOrigin: true }, '/v1': { target: api, changeOrigin: true } },
  },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.ts'],
    restoreMocks: true,
  },
});
