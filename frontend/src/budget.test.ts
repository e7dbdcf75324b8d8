// @vitest-environment node
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Rolldown } from 'vite';
import { expect, test, vi } from 'vitest';

const root = join(import.meta.dirname, '..');

test(
  'the first screen without a conversation needs less than 163 kB of code and 21 kB of style, and runs nothing but files of ours',
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
    // App.svelte imports this component when no conversation is shown.
    const start = chunks.find((chunk) => chunk.facadeModuleId?.endsWith('/start/NewConversation.svelte'));
    expect([entry, start]).not.toContain(undefined);
    // A chunk loads together with its static imports, and theirs.
    const first = new Set([entry, start]);
    for (const chunk of first)
      for (const name of chunk?.imports ?? []) first.add(chunks.find(({ fileName }) => fileName === name));
    // A style sheet that is loaded later would make the engine restyle the whole page.
    const styles = built.output
      .filter((part) => part.type === 'asset')
      .filter((part) => part.fileName.endsWith('.css'));
    expect(styles).toHaveLength(1);
    const sizeOf = (texts: (string | Uint8Array)[]) =>
      texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
    expect(sizeOf([...first].map((chunk) => chunk?.code ?? ''))).toBeLessThan(163_000);
    expect(sizeOf(styles.map((style) => style.source))).toBeLessThan(21_000);

    const page = built.output.find((part) => part.fileName === 'index.html');
    const html = page?.type === 'asset' ? String(page.source) : '';
    expect(html).toMatch(/<script type="module"[^>]* src="\/assets\/[^"]+"><\/script>/);
    expect(html.replace(/<script[^>]* src=[^>]*><\/script>/g, '')).not.toMatch(
      /<script|<style|\son\w+=|https?:/,
    );
  },
);
