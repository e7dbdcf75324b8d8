import { createCssVariablesTheme, createHighlighterCore, type HighlighterCore } from 'shiki/core';
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript';
import type { GrammarState } from 'shiki/types';
import type { Closed, Painted, Wanted } from './highlight';

// Colours code in a worker, because compiling a grammar takes longer than a frame. Grammars are loaded when first needed.

type Grammar = Parameters<HighlighterCore['loadLanguage']>[0];

const grammars: Record<string, () => Promise<{ default: Grammar }>> = {
  bat: () => import('shiki/langs/bat.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  clojure: () => import('shiki/langs/clojure.mjs'),
  cmake: () => import('shiki/langs/cmake.mjs'),
  cpp: () => import('shiki/langs/cpp.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  dart: () => import('shiki/langs/dart.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  dotenv: () => import('shiki/langs/dotenv.mjs'),
  elixir: () => import('shiki/langs/elixir.mjs'),
  erlang: () => import('shiki/langs/erlang.mjs'),
  fsharp: () => import('shiki/langs/fsharp.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  graphql: () => import('shiki/langs/graphql.mjs'),
  groovy: () => import('shiki/langs/groovy.mjs'),
  haskell: () => import('shiki/langs/haskell.mjs'),
  hcl: () => import('shiki/langs/hcl.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  http: () => import('shiki/langs/http.mjs'),
  ini: () => import('shiki/langs/ini.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  julia: () => import('shiki/langs/julia.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  latex: () => import('shiki/langs/latex.mjs'),
  less: () => import('shiki/langs/less.mjs'),
  log: () => import('shiki/langs/log.mjs'),
  lua: () => import('shiki/langs/lua.mjs'),
  make: () => import('shiki/langs/make.mjs'),
  markdown: () => import('shiki/langs/markdown.mjs'),
  nginx: () => import('shiki/langs/nginx.mjs'),
  nix: () => import('shiki/langs/nix.mjs'),
  'objective-c': () => import('shiki/langs/objective-c.mjs'),
  ocaml: () => import('shiki/langs/ocaml.mjs'),
  perl: () => import('shiki/langs/perl.mjs'),
  php: () => import('shiki/langs/php.mjs'),
  powershell: () => import('shiki/langs/powershell.mjs'),
  prisma: () => import('shiki/langs/prisma.mjs'),
  proto: () => import('shiki/langs/proto.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  r: () => import('shiki/langs/r.mjs'),
  ruby: () => import('shiki/langs/ruby.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  scala: () => import('shiki/langs/scala.mjs'),
  scss: () => import('shiki/langs/scss.mjs'),
  shellscript: () => import('shiki/langs/shellscript.mjs'),
  solidity: () => import('shiki/langs/solidity.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  svelte: () => import('shiki/langs/svelte.mjs'),
  swift: () => import('shiki/langs/swift.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  typescript: () => import('shiki/langs/typescript.mjs'),
  viml: () => import('shiki/langs/viml.mjs'),
  vue: () => import('shiki/langs/vue.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
  zig: () => import('shiki/langs/zig.mjs'),
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

/**
 * The first lines of a language compile its patterns, which on a busy machine takes seconds; by the library's own limit of half a second they
 * stayed plain. A longer line is no text for people.
 */
const limits = { tokenizeTimeLimit: 5_000, tokenizeMaxLineLength: 5_000 };

/** The state of the grammar at the end of each growing block, by the block's number. */
const streams = new Map<number, GrammarState | undefined>();

async function paint({ id, code, language, stream }: Wanted): Promise<Painted> {
  const grammar = Object.hasOwn(grammars, language) ? grammars[language] : undefined;
  if (!grammar) return { id, lines: undefined };
  const highlighter = await ready;
  if (!highlighter.getLoadedLanguages().includes(language)) {
    await highlighter.loadLanguage((await grammar()).default);
  }
  const before = stream === undefined ? undefined : streams.get(stream);
  const { tokens, grammarState } = highlighter.codeToTokens(code, {
    lang: language,
    theme: 'ours',
    ...limits,
    ...(before ? { grammarState: before } : {}),
  });
  if (stream !== undefined) streams.set(stream, grammarState);
  return { id, lines: tokens.map((line) => line.map(({ content, color }) => [classOf(color), content])) };
}

addEventListener('message', (event: MessageEvent<Wanted | Closed>) => {
  const { data } = event;
  if ('closed' in data) {
    streams.delete(data.closed);
    return;
  }
  const { id } = data;
  paint(data).then(
    (painted) => postMessage(painted),
    () => postMessage({ id, lines: undefined } satisfies Painted),
  );
});
