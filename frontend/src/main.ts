import { mount } from 'svelte';
import App from './App.svelte';
import { conversationPart } from './conversation.svelte';
import { watchDrops } from './shell/drops';
import { stopComposingKeys } from './ui/composition';
import './styles/fonts.css';
import './styles/tokens.css';
import './styles/base.css';
import './styles/parts.css';
import './markdown/markdown.css';

// Comes while the frame is drawn and the server answers.
void conversationPart.load();
// Terminals measure the font when they open, which may be the first use of it.
for (const font of ['Inter Variable', 'JetBrains Mono Variable']) void document.fonts.load(`1em '${font}'`);
stopComposingKeys(window);
watchDrops(document);
const target = document.getElementById('app');
if (target) mount(App, { target });
