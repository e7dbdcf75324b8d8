// Before anything is drawn: the look that was set last. The program tells it anew once it answers; see src/ui/appearance.ts.
try {
  const look = JSON.parse(localStorage.getItem('deskhand.appearance') ?? '{}');
  const root = document.documentElement;
  for (const name of ['theme', 'contrast', 'motion', 'text']) {
    if (typeof look[name] === 'string') root.dataset[name] = look[name];
  }
  const size = Number(look.text);
  if (size >= 80 && size <= 150) root.style.setProperty('--text-scale', String(size / 100));
  const code = Number(look.code);
  if (code >= 80 && code <= 150) root.style.setProperty('--code-scale', String(code / 100));
  for (const [name, property, builtIn] of [
    ['font', '--own-font', 'Inter Variable'],
    ['mono', '--own-mono', 'JetBrains Mono Variable'],
  ]) {
    const family = look[name];
    if (typeof family === 'string' && /^[^"'\\;{}<>]{1,100}$/.test(family))
      root.style.setProperty(property, `"${family}", "${builtIn}"`);
  }
} catch {
  // A look that cannot be read is the usual one.
}
