import { store } from './storage';

// How the page looks, as the person has set it. The attributes of the root element are what the tokens go by (styles/tokens.css); they
// are kept, so that the next start has them before anything is drawn (public/appearance.js, which reads the same text).

/** What the settings say of it. */
export interface Appearance {
  theme: string;
  contrast: string;
  textSize: number;
  motion: string;
}

const key = 'deskhand.appearance';

/** Makes the page look like that; what is the system's choice has no attribute. */
export function appear({ theme, contrast, textSize, motion }: Appearance): void {
  const look: Record<string, string> = {};
  if (theme !== 'system') look['theme'] = theme;
  if (contrast !== 'system') look['contrast'] = contrast;
  if (motion !== 'system') look['motion'] = motion;
  if (textSize !== 100) look['text'] = String(textSize);
  const root = document.documentElement;
  for (const name of ['theme', 'contrast', 'motion', 'text']) {
    const value = look[name];
    if (value === undefined) root.removeAttribute(`data-${name}`);
    else root.dataset[name] = value;
  }
  if (look['text'] === undefined) root.style.removeProperty('--text-scale');
  else root.style.setProperty('--text-scale', String(textSize / 100));
  store(key, JSON.stringify(look));
}
