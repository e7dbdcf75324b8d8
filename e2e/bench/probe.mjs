// The measurements within the page, the same in Chromium and in the window: functions that are sent to the page as text, and leave their
// results on `window.probe`. A frame is the time between two calls of requestAnimationFrame; "painted" is the first task after the frame in
// which the content was there.

/** Puts the probe into the page. */
export function install() {
  if (window.probe) return;
  const probe = (window.probe = { gaps: [], most: 0, blank: 0, jumps: 0, marks: {} });
  const log = () => document.querySelector("[role=log]");
  /** In a frame: calls after it was painted. */
  const afterPaint = (call) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => call(performance.now());
    channel.port2.postMessage(0);
  };

  /** How many elements there are, and how many nodes of every kind. */
  probe.nodes = () => {
    let all = 0;
    for (const walker = document.createTreeWalker(document); walker.nextNode(); ) all++;
    return { elements: document.getElementsByTagName("*").length, nodes: all };
  };

  /** Records frames until told to stop. */
  probe.record = () => {
    const mine = (probe.recording = {});
    probe.gaps = [];
    probe.at = [];
    probe.most = probe.blank = probe.jumps = 0;
    let last = performance.now(), n = 0;
    const frame = () => {
      if (probe.recording !== mine) return;
      const now = performance.now();
      probe.gaps.push(now - last);
      probe.at.push(now);
      last = now;
      if (n++ % 30 === 0) probe.most = Math.max(probe.most, document.getElementsByTagName("*").length);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  };

  probe.stop = () => {
    probe.recording = undefined;
    return { gaps: probe.gaps, most: probe.most, blank: probe.blank, jumps: probe.jumps };
  };

  /** Does something and waits until a condition holds and is painted: the time is left under the name. */
  probe.time = (name, act, holds) => {
    delete probe.marks[name];
    const began = performance.now();
    const look = () => {
      if (holds()) afterPaint((now) => (probe.marks[name] = now - began));
      else requestAnimationFrame(look);
    };
    act();
    requestAnimationFrame(look);
  };

  /** Whether rows of a transcript can be seen, where it says "there is nothing" no more. */
  probe.shows = (title) => document.querySelector("main h1")?.textContent === title && !!log()?.querySelector("[data-row]");

  /**
   * Scrolls as a wheel does, a step a frame, and looks after each step whether what stood in the middle moved just so far, and whether
   * rows fill the view.
   */
  probe.scroll = (step, frames) => {
    const scroller = log();
    const mine = (probe.scrolling = {});
    probe.done = false;
    let left = frames, seen, top = 0;
    const rowAt = (y) => {
      const box = scroller.getBoundingClientRect();
      return document.elementFromPoint(box.left + box.width / 2, box.top + y)?.closest("[data-row]");
    };
    const frame = () => {
      if (probe.scrolling !== mine) return;
      if (seen?.isConnected) {
        const moved = seen.getBoundingClientRect().top - top;
        if (Math.abs(moved + probe.went) > 2) probe.jumps++;
      }
      const height = scroller.clientHeight;
      let empty = 0;
      for (const part of [0.15, 0.35, 0.5, 0.65, 0.85]) if (!rowAt(height * part)) empty++;
      if (empty > 3) probe.blank++; // margins between rows are no rows either
      if (left-- <= 0) {
        probe.done = true;
        return;
      }
      seen = rowAt(height / 2);
      top = seen?.getBoundingClientRect().top ?? 0;
      const before = scroller.scrollTop;
      scroller.dispatchEvent(new WheelEvent("wheel", { deltaY: step, bubbles: true, cancelable: true }));
      scroller.scrollTop += step;
      probe.went = scroller.scrollTop - before;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  };
}

/** The greatest, the 99th percentile and how many are over a limit. */
export function summary(gaps, limit = 50) {
  const sorted = [...gaps].sort((a, b) => a - b);
  return {
    frames: gaps.length,
    worst: Math.round(sorted.at(-1) ?? 0),
    p99: Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0),
    median: Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0),
    over: sorted.filter((gap) => gap > limit).length,
  };
}
