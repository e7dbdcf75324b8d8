import { store } from './storage';

// Applies the person's settings of the look. styles/tokens.css reads the attributes of the root element. They are also stored, so that
// public/appearance.js can set them before the next page draws anything.

/** The fields of the settings that concern the look. */
interface Appearance {
  theme: string;
  contrast: string;
  textSize: number;
  motion: string;
  /** Names of font families; '' for the built-in ones. */
  textFont: string;
  codeFont: string;
  codeSize: number;
}

const key = 'deskhand.appearance';

/** Sets the attributes. A setting that follows the system, or is as usual, has no attribute. */
export function appear({ theme, contrast, textSize, motion, ...letters }: Appearance): void {
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
  const { textFont, codeFont, codeSize } = letters;
  if (textFont) look['font'] = textFont;
  if (codeFont) look['mono'] = codeFont;
  if (codeSize !== 100) look['code'] = String(codeSize);
  const own = (name: string, value: string | undefined) =>
    value === undefined ? root.style.removeProperty(name) : root.style.setProperty(name, value);
  own('--own-font', textFont ? `"${textFont}", "Inter Variable"` : undefined);
  own('--own-mono', codeFont ? `"${codeFont}", "JetBrains Mono Variable"` : undefined);
  own('--code-scale', codeSize === 100 ? undefined : String(codeSize / 100));
  store(key, JSON.stringify(look));
}
