import DOMPurify from 'dompurify';
import mermaid from 'mermaid';
import { bare } from './bare';

// Draws Mermaid's diagrams as SVG that can do nothing. This file contains Mermaid and is loaded with the first diagram.
//
// A diagram is drawn in the page, because its labels have to be measured, and shown in a frame without scripts, without the page's origin
// and without a network. What a diagram says about its drawing (directives, the head of its file) is left out: it could change the style of
// the page while it is measured.

export interface Drawn {
  /** The document of the frame. */
  readonly page: string;
  readonly width: number;
  readonly height: number;
}

/** The colours of the page, which a diagram has too. */
export interface Look {
  readonly dark: boolean;
  readonly text: string;
  readonly muted: string;
  readonly border: string;
  readonly surface: string;
  readonly raised: string;
  readonly accent: string;
}

/** More would hold up the page for seconds. */
const longest = 20_000;
/** The frame has no access to the page's fonts, so the system's are measured as well. */
const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

const purifier = DOMPurify(window);
purifier.setConfig({
  USE_PROFILES: { svg: true, svgFilters: true },
  ADD_TAGS: ['style'],
  ADD_ATTR: ['transform'],
  // A link keeps its place, and leads nowhere.
  FORBID_TAGS: ['image', 'foreignObject', 'script', 'use'],
  FORBID_ATTR: ['href', 'xlink:href', 'target'],
  ALLOW_DATA_ATTR: false,
});

const drawn = new Map<string, Promise<Drawn>>();
let drawings = 0;

/** Draws a diagram. The promise fails with what is wrong with the source. */
export function drawDiagram(source: string, look: Look): Promise<Drawn> {
  const key = JSON.stringify([look, source]);
  let held = drawn.get(key);
  if (!held) {
    if (drawn.size >= 50) drawn.clear();
    held = draw(source, look);
    drawn.set(key, held);
  }
  return held;
}

async function draw(source: string, look: Look): Promise<Drawn> {
  if (source.length > longest) throw new Error('too long');
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: 'strict',
    suppressErrorRendering: true,
    deterministicIds: true,
    htmlLabels: false,
    flowchart: { htmlLabels: false, useMaxWidth: false },
    sequence: { useMaxWidth: false },
    maxTextSize: longest,
    maxEdges: 400,
    fontFamily: font,
    theme: 'base',
    themeVariables: variables(look),
  });
  const place = document.createElement('div');
  place.inert = true;
  place.style.cssText = 'position: fixed; left: -10000px; top: 0; width: 1000px; visibility: hidden';
  document.body.append(place);
  try {
    const { svg } = await mermaid.render(`diagram-${drawings++}`, bare(source), place);
    return framed(purifier.sanitize(svg), look);
  } finally {
    place.remove();
  }
}

function variables({ dark, text, muted, border, surface, raised, accent }: Look) {
  return {
    darkMode: dark,
    fontFamily: font,
    fontSize: '14px',
    background: surface,
    primaryColor: raised,
    primaryTextColor: text,
    primaryBorderColor: border,
    secondaryColor: surface,
    secondaryTextColor: text,
    secondaryBorderColor: border,
    tertiaryColor: surface,
    tertiaryTextColor: text,
    tertiaryBorderColor: border,
    lineColor: muted,
    textColor: text,
    mainBkg: raised,
    nodeBorder: border,
    clusterBkg: surface,
    clusterBorder: border,
    edgeLabelBackground: surface,
    titleColor: text,
    noteBkgColor: surface,
    noteTextColor: text,
    noteBorderColor: border,
    actorBkg: raised,
    actorBorder: border,
    actorTextColor: text,
    signalColor: muted,
    signalTextColor: text,
    activationBkgColor: accent,
  };
}

function framed(svg: string, { surface, dark }: Look): Drawn {
  const [, , , width = 0, height = 0] =
    /viewBox="([-\d.]+)[ ,]+([-\d.]+)[ ,]+([\d.]+)[ ,]+([\d.]+)"/.exec(svg)?.map(Number) ?? [];
  if (!(width > 0 && height > 0)) throw new Error('empty');
  const page =
    `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">` +
    `<style>:root{color-scheme:${dark ? 'dark' : 'light'};background:${surface}}body{margin:0}svg{display:block;width:100%;max-width:none!important;height:auto}.node rect{rx:5px;ry:5px}</style>${svg}`;
  return { page, width, height };
}
