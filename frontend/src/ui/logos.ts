import amp from 'simple-icons/icons/amp.svg?raw';
import claude from 'simple-icons/icons/claude.svg?raw';
import cline from 'simple-icons/icons/cline.svg?raw';
import cursor from 'simple-icons/icons/cursor.svg?raw';
import copilot from 'simple-icons/icons/githubcopilot.svg?raw';
import gemini from 'simple-icons/icons/googlegemini.svg?raw';
import junie from 'simple-icons/icons/jetbrains.svg?raw';
import kimi from 'simple-icons/icons/kimi.svg?raw';
import mistral from 'simple-icons/icons/mistralai.svg?raw';
import opencode from 'simple-icons/icons/opencode.svg?raw';
import qwen from 'simple-icons/icons/qwen.svg?raw';

// The logos of agents, as far as their licences allow, drawn in the colour of the text around them. The module is loaded on demand.

/** Each logo by the id of its agent: a few have a shorter one here than in the registry. */
const logos: Readonly<Record<string, string>> = {
  amp,
  claude,
  cline,
  cursor,
  gemini,
  'github-copilot': copilot,
  'github-copilot-cli': copilot,
  junie,
  kimi,
  // The demo agent, ours.
  mock: '<svg viewBox="0 0 32 32" fill="none" stroke="currentColor" stroke-width="4"><path d="M5 5h10.5C22.7 5 27 9.4 27 16s-4.3 11-11.5 11H5z" stroke-linejoin="round"/><path d="M13 16h13" stroke-linecap="round"/></svg>',
  'mistral-vibe': mistral,
  opencode,
  'qwen-code': qwen,
};

/** Returns the logo of an agent as SVG without its title, which would be a second tooltip; '' when the agent has no logo here. */
export function logoOf(agent: string): string {
  const logo = Object.hasOwn(logos, agent) ? logos[agent] : undefined;
  return logo?.replace(/<title>.*?<\/title>/, '') ?? '';
}
