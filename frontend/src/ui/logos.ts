import amp from '@lobehub/icons-static-svg/icons/amp.svg?raw';
import claude from '@lobehub/icons-static-svg/icons/claude.svg?raw';
import cline from '@lobehub/icons-static-svg/icons/cline.svg?raw';
import codebuddy from '@lobehub/icons-static-svg/icons/codebuddy.svg?raw';
import codex from '@lobehub/icons-static-svg/icons/codex.svg?raw';
import cursor from '@lobehub/icons-static-svg/icons/cursor.svg?raw';
import gemini from '@lobehub/icons-static-svg/icons/gemini.svg?raw';
import copilot from '@lobehub/icons-static-svg/icons/githubcopilot.svg?raw';
import goose from '@lobehub/icons-static-svg/icons/goose.svg?raw';
import grok from '@lobehub/icons-static-svg/icons/grok.svg?raw';
import junie from '@lobehub/icons-static-svg/icons/junie.svg?raw';
import kilo from '@lobehub/icons-static-svg/icons/kilocode.svg?raw';
import kimi from '@lobehub/icons-static-svg/icons/kimi.svg?raw';
import mistral from '@lobehub/icons-static-svg/icons/mistral.svg?raw';
import opencode from '@lobehub/icons-static-svg/icons/opencode.svg?raw';
import openhands from '@lobehub/icons-static-svg/icons/openhands.svg?raw';
import qoder from '@lobehub/icons-static-svg/icons/qoder.svg?raw';
import qwen from '@lobehub/icons-static-svg/icons/qwen.svg?raw';

// The logos of agents, drawn in the colour of the text around them. The module is loaded on demand.

/** Each logo by the id of its agent in the registry. */
const logos: Readonly<Record<string, string>> = {
  'amp-acp': amp,
  'claude-acp': claude,
  cline,
  'codebuddy-code': codebuddy,
  'codex-acp': codex,
  cursor,
  gemini,
  'github-copilot': copilot,
  'github-copilot-cli': copilot,
  goose,
  'grok-build': grok,
  junie,
  kilo,
  kimi,
  mock: '<svg viewBox="0 0 32 32" width="1em" height="1em" fill="none" stroke="currentColor" stroke-width="4"><path d="M5 5h10.5C22.7 5 27 9.4 27 16s-4.3 11-11.5 11H5z" stroke-linejoin="round"/><path d="M13 16h13" stroke-linecap="round"/></svg>', // the demo agent, ours
  'mistral-vibe': mistral,
  opencode,
  openhands,
  qoder,
  'qwen-code': qwen,
};

/** Returns the logo of an agent as SVG without its title, which would be a second tooltip; '' when the agent has no logo here. */
export function logoOf(agent: string): string {
  const logo = Object.hasOwn(logos, agent) ? logos[agent] : undefined;
  return logo?.replace(/<title>.*?<\/title>/, '') ?? '';
}
