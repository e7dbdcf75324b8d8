import { store } from './storage';

// Applies the person's settings of the look. styles/tokens.css reads the attributes of the root element. They are also stored, so that
// public/appearance.js can set them before the next page draws anything.

/** The fields of the settings that concern the look. */
interface Appearance {
  theme: string;
  contrast: string;
  textSize: number;
  motion: string;
}

const key = 'deskhand.appearance';

/** Sets the attributes. A setting that follows the system has no attribute. */
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
