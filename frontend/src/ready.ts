import { extras } from './markdown/late';
import { lex } from './markdown/rules';
import { html } from './markdown/render';

// Prepares the page for the first answer: patterns are compiled, fonts loaded, and the parts of a turn's end fetched. Without that the
// frame of the first words took 70 ms in WebKit, and the frame of the end 50.

const phrases = '# a\n\nb *c* **d** `e` [f](https://example.com)';
const blocks = '<i>\n\n- g\n\n> h\n\n| i |\n|---|\n| j |\n\n1. k\n\n- ```\n  l\n  ```\n';

export function makeReady(): void {
  html(...lex(`${phrases} ${blocks}`, {}));
  // Lays out an element of every font.
  const sample = document.createElement('div');
  sample.className = 'markdown';
  sample.inert = true;
  sample.style.cssText = 'height: 0; overflow: hidden; visibility: hidden';
  sample.innerHTML = html(...lex(phrases, {}));
  document.body.append(sample);
  sample.getBoundingClientRect();
  sample.remove();
  void extras.load();
  // The components that need these files load them again, and report a failure.
  void import('./changes/footer').catch(() => undefined);
  void import('./composer/Queue.svelte').catch(() => undefined);
  // Keys typed after a shortcut belong to the part that the shortcut opens, so these parts are loaded early too.
  void import('./session/finding').catch(() => undefined);
  void import('./start/NewConversation.svelte').catch(() => undefined);
  void import('./content/pixels').catch(() => undefined);
}
