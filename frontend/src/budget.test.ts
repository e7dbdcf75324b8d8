// @vitest-environment node
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Rolldown } from 'vite';
import { expect, test, vi } from 'vitest';

const root = join(import.meta.dirname, '..');

test(
  'the page starts with less than 176 kB, style included, and runs nothing but files of ours',
  { timeout: 120_000 },
  async () => {
    vi.stubEnv('NODE_ENV', 'production'); // a production build, without the debugging code of the libraries
    const built = (await build({
      root,
      configFile: join(root, 'vite.config.ts'),
      logLevel: 'silent',
      build: { write: false },
    })) as Rolldown.RolldownOutput;
    vi.unstubAllEnvs();
    const chunks = built.output.filter((part) => part.type === 'chunk');
    const entry = chunks.find((chunk) => chunk.isEntry);
    // The entry and its static imports load together.
    const first = chunks.filter((chunk) => chunk === entry || entry?.imports.includes(chunk.fileName));
    // A style sheet that is loaded later would make the engine restyle the whole page.
    const styles = built.output
      .filter((part) => part.type === 'asset')
      .filter((part) => part.fileName.endsWith('.css'));
    expect(styles).toHaveLength(1);
    const code = [...first.map((chunk) => chunk.code), ...styles.map((style) => style.source)];
    const size = code.reduce((sum, text) => sum + gzipSync(text).length, 0);
    expect(size).toBeLessThan(176_000);

    const page = built.output.find((part) => part.fileName === 'index.html');
    const html = page?.type === 'asset' ? String(page.source) : '';
    expect(html).toMatch(/<script type="module"[^>]* src="\/assets\/[^"]+"><\/script>/);
    expect(html.replace(/<script[^>]* src=[^>]*><\/script>/g, '')).not.toMatch(
      /<script|<style|\son\w+=|https?:/,
    );
  },
);
