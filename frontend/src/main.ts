import { mount } from 'svelte';
import App from './App.svelte';
import './frame/theme.css';
import { followSystem } from './state/theme.svelte';

followSystem();
mount(App, { target: document.getElementById('app')! });
