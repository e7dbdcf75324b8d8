import { extras } from '../markdown/late';
import { lex } from '../markdown/rules';
import { html } from '../markdown/render';

// What the first answer needs is read, compiled and laid out once before there is one: patterns, fonts, the parts of its end. Else the
// frame of its first words took 70 ms in WebKit, and that of its end 50.

const phrases = '# a\n\nb *c* **d** `e` [f](https://example.com)';
const blocks = '<i>\n\n- g\n\n> h\n\n| i |\n|---|\n| j |\n\n1. k\n\n- ```\n  l\n  ```\n';

export function makeReady(): void {
  html(...lex(`${phrases} ${blocks}`, {}));
  // Laid out is what has fonts of its own.
  const sample = document.createElement('div');
  sample.className = 'markdown';
  sample.inert = true;
  sample.style.cssText = 'height: 0; overflow: hidden; visibility: hidden';
  sample.innerHTML = html(...lex(phrases, {}));
  document.body.append(sample);
  sample.getBoundingClientRect();
  sample.remove();
  void extras.load();
  // Whoever needs them asks again, and tells of it when they cannot be had.
  void import('../changes/footer').catch(() => undefined);
  void import('../composer/Queue.svelte').catch(() => undefined);
  // What is typed after their keys is for them.
  void import('./finding').catch(() => undefined);
  void import('../start/NewConversation.svelte').catch(() => undefined);
  void import('../content/pixels').catch(() => undefined);
}
