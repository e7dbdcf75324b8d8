import '../strings/keyboard';

// The part of the page that keys need. It is loaded right after the page, before a person can have pressed a key.

export { act, behindSlash, uncover } from './actions';
export { default as Overlay } from './Overlay.svelte';
import './recent.svelte';
