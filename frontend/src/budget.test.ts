// @vitest-environment node
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Rolldown } from 'vite';
import { expect, test, vi } from 'vitest';

const root = join(import.meta.dirname, '..');

// The entry is what index.html loads before anything is on the screen. Fonts are not counted: they are files of their own, and the page is
// drawn with them as soon as they are there.
//
// The style sheet is the one sheet of all screens (see vite.config.ts), so its limit follows the number of screens and not the start: it is
// kept so low that a sheet of a library, which is larger than all of ours, cannot get in unseen.
test(
  'the page starts with less than 150 kB of code and 25 kB of style, shows a conversation with less than 195 kB, and runs nothing but files of ours',
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
    const ofScreen = (name: string) => chunks.find((chunk) => chunk.facadeModuleId?.endsWith(name));
    const start = ofScreen('/start/Start.svelte');
    const conversation = ofScreen('/src/Conversation.svelte');
    expect([entry, start, conversation]).not.toContain(undefined);
    const sizeOf = (texts: (string | Uint8Array)[]) =>
      texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
    /** The size of chunks with their static imports, and theirs, which load together. */
    const loading = (...first: (Rolldown.OutputChunk | undefined)[]) => {
      const all = new Set(first);
      for (const chunk of all)
        for (const name of chunk?.imports ?? []) all.add(chunks.find(({ fileName }) => fileName === name));
      return sizeOf([...all].map((chunk) => chunk?.code ?? ''));
    };
    expect(loading(entry)).toBeLessThan(150_000);
    expect(loading(entry, start)).toBeLessThan(150_000);
    expect(loading(entry, conversation)).toBeLessThan(195_000);
    // A style sheet that is loaded later would make the engine restyle the whole page.
    const styles = built.output
      .filter((part) => part.type === 'asset')
      .filter((part) => part.fileName.endsWith('.css'));
    expect(styles).toHaveLength(1);
    expect(sizeOf(styles.map((style) => style.source))).toBeLessThan(25_000);

    // The fonts, of which a page loads those whose characters it has.
    const fonts = built.output.filter((part) => part.type === 'asset' && part.fileName.endsWith('.woff2'));
    expect(fonts.length).toBeGreaterThan(2);
    expect(
      fonts.reduce((sum, font) => sum + (font.type === 'asset' ? font.source.length : 0), 0),
    ).toBeLessThan(280_000);

    const page = built.output.find((part) => part.fileName === 'index.html');
    const html = page?.type === 'asset' ? String(page.source) : '';
    expect(html.match(/as="font"[^>]*href="\/assets\/[\w-]+-latin-wght-normal-[^"]+\.woff2"/g)).toHaveLength(
      2,
    );
    expect(html).toMatch(/<script type="module"[^>]* src="\/assets\/[^"]+"><\/script>/);
    expect(html.replace(/<script[^>]* src=[^>]*><\/script>/g, '')).not.toMatch(
      /<script|<style|\son\w+=|https?:/,
    );
  },
);
