import "./lanes.mjs";
