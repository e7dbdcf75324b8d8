import '../strings/keyboard';

// What lies behind the keys: loaded when the page stands, before anybody can have pressed one.

export { act, behindSlash, uncover } from './acts';
export { default as Overlay } from './Overlay.svelte';
import './recent.svelte';
