import { mount } from 'svelte';
import App from './App.svelte';
import { conversationPart } from './conversation.svelte';
import { watchDrops } from './shell/drops';
import { stopComposingKeys } from './ui/composition';
import './styles/tokens.css';
import './styles/base.css';
import './styles/parts.css';
import './markdown/markdown.css';

// Comes while the frame is drawn and the server answers.
void conversationPart.load();
stopComposingKeys(window);
watchDrops(document);
const target = document.getElementById('app');
if (target) mount(App, { target });
