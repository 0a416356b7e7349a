// The type definitions in dist/, from js/index.d.ts, which is written by hand
// for the ES module. CommonJS needs another shape, because there the module is
// the plugin; the slim entry has the same face.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './run.mjs';

/** @returns {{ path: string, contents: string }[]} */
export function types() {
  const source = readFileSync(join(root, 'js', 'index.d.ts'), 'utf8');
  const slim = `export * from './index.js';\nexport { default } from './index.js';\n`;
  const commonJsSlim = `import fastSync = require('./index.cjs');\nexport = fastSync;\n`;
  return Object.entries({
    'index.d.ts': source,
    'index.d.cts': commonJsTypes(source),
    'slim.d.ts': slim,
    'slim.d.cts': commonJsSlim,
  }).map(([name, contents]) => ({ path: join(root, 'dist', name), contents }));
}

/**
 * `export =` of the plugin with the other exports on it. A namespace of type
 * aliases is the one thing that may share its name.
 * @param {string} source
 */
function commonJsTypes(source) {
  const names = [...source.matchAll(/^export (?:interface|type) (\w+)\s*(<(?:[^<>]|<[^<>]*>)*>)?/gm)];
  const aliases = names.map(([, name, parameters = '']) => {
    const args = parameters.replace(/(\w+)[^,<>]*(<[^<>]*>)?[^,<>]*/g, '$1');
    return `  type ${name}${parameters} = esm.${name}${args};\n`;
  });
  return `import type * as esm from './index.js' with { 'resolution-mode': 'import' };
declare const fastSync: typeof esm.default & typeof esm;
declare namespace fastSync {
${aliases.join('')}}
export = fastSync;
`;
}
