// Checks an OpenAPI document by the rules of the field's linter, and fails when it breaks one.
//
//   node build/lint-openapi.mjs FILE
import { createRequire } from 'node:module';

const require = createRequire(new URL('../frontend/package.json', import.meta.url));
const { lint, createConfig, getTotals } = require('@redocly/openapi-core');

const file = process.argv[2];
const problems = await lint({ ref: file, config: await createConfig({ extends: ['recommended-strict'] }) });
for (const p of problems) console.error(`${file}: ${p.ruleId}: ${p.message} (${p.location[0]?.pointer})`);
const { errors, warnings } = getTotals(problems);
process.exit(errors + warnings > 0 ? 1 : 0);
