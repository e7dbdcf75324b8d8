import { extras } from './late';
import { lex } from './rules';
import { html } from './render';

// Prepares the renderer for the first answer: patterns are compiled and fonts loaded. Without that the frame of the first words took 70 ms
// in WebKit.

const phrases = '# a\n\nb *c* **d** `e` [f](https://example.com)';
const blocks = '<i>\n\n- g\n\n> h\n\n| i |\n|---|\n| j |\n\n1. k\n\n- ```\n  l\n  ```\n';

export function warm(): void {
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
}
