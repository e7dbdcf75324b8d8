import { createCssVariablesTheme, createHighlighterCore, type HighlighterCore } from 'shiki/core';
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript';
import type { Painted, Wanted } from './highlight';

// Colours code in a worker, because compiling a grammar takes longer than a frame. Grammars are loaded when first needed.

type Grammar = Parameters<HighlighterCore['loadLanguage']>[0];

const grammars: Record<string, () => Promise<{ default: Grammar }>> = {
  c: () => import('shiki/langs/c.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  ini: () => import('shiki/langs/ini.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  make: () => import('shiki/langs/make.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  shellscript: () => import('shiki/langs/shellscript.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  swift: () => import('shiki/langs/swift.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  typescript: () => import('shiki/langs/typescript.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
};

const theme = createCssVariablesTheme({ name: 'ours' });

const ready = createHighlighterCore({
  themes: [theme],
  engine: createJavaScriptRegexEngine({ forgiving: true }),
});

/** Returns the class for a theme colour, which is the name of a variable. */
function classOf(color: string | undefined): string {
  const name = /-token-([a-z-]+)\)$/.exec(color ?? '')?.[1];
  return name ? `tok-${name}` : '';
}

async function paint({ id, code, language }: Wanted): Promise<Painted> {
  const grammar = Object.hasOwn(grammars, language) ? grammars[language] : undefined;
  if (!grammar) return { id, lines: undefined };
  const highlighter = await ready;
  if (!highlighter.getLoadedLanguages().includes(language)) {
    await highlighter.loadLanguage((await grammar()).default);
  }
  const { tokens } = highlighter.codeToTokens(code, { lang: language, theme: 'ours' });
  return { id, lines: tokens.map((line) => line.map(({ content, color }) => [classOf(color), content])) };
}

addEventListener('message', (event: MessageEvent<Wanted>) => {
  const { id } = event.data;
  paint(event.data).then(
    (painted) => postMessage(painted),
    () => postMessage({ id, lines: undefined } satisfies Painted),
  );
});
