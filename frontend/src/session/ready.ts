import { lex } from '../markdown/blocks';
import { html } from '../markdown/render';

// What the first answer needs is read, compiled and laid out once before there is one: patterns, fonts, the parts of its end. Else the
// frame of its first words took 70 ms in WebKit, and that of its end 50.

const everything =
  '# a\n\nb *c* **d** `e` [f](https://example.com) <i>\n\n- g\n\n> h\n\n| i |\n|---|\n| j |\n\n1. k\n\n- ```\n  l\n  ```\n';

export function makeReady(): void {
  const sample = document.createElement('div');
  sample.className = 'markdown';
  sample.inert = true;
  sample.style.cssText = 'position: fixed; inset: 0; contain: strict; visibility: hidden';
  sample.innerHTML = html(...lex(everything, {}));
  document.body.append(sample);
  sample.getBoundingClientRect(); // lays it out
  sample.remove();
  void import('../changes/footer');
}
