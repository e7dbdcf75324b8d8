import { mount } from 'svelte';
import App from './App.svelte';
import { watchDrops } from './shell/drops';
import { stopComposingKeys } from './ui/composition';
import './styles/tokens.css';
import './styles/base.css';
import './styles/parts.css';
import './markdown/markdown.css';

stopComposingKeys(window);
watchDrops(document);
const target = document.getElementById('app');
if (target) mount(App, { target });
