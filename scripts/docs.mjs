// node scripts/docs.mjs [--check]: writes docs/api.md from js/index.d.ts, where every option and event is described; with
// --check it only tells whether that was done. Decides the shape of the page, and no word of it but headings.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { declarations } from './lib/declarations.mjs';
import { put } from './lib/files.mjs';
import { root, script, Told } from './lib/run.mjs';

/** @typedef {import('./lib/declarations.mjs').Declaration} Declaration */

const page = join(root, 'docs', 'api.md');

await script(async () => {
  const { values } = parseArgs({ options: { check: { type: 'boolean' } } });
  const text = reference(readFileSync(join(root, 'js', 'index.d.ts'), 'utf8'));
  if (!values.check) put(page, text);
  else if (!existsSync(page) || readFileSync(page, 'utf8') !== text) {
    throw new Told('docs/api.md does not say what js/index.d.ts says: node scripts/docs.mjs');
  }
});

/** @param {string} source */
function reference(source) {
  const all = declarations(source);
  const byDefault = all.map(({ code }) => /^export default (?:function )?(\w+)/.exec(code)?.[1]).find(Boolean);
  const shown = all.filter(({ code, kind, name }) => kind !== 'import' && !/^export (default \w+$|[{*])/.test(code)
    && (code.startsWith('export ') || name === byDefault || /^declare (global|module)/.test(code)));
  const sections = shown.flatMap((found) => section(found, byDefault, ''));
  return `<!-- Written by scripts/docs.mjs from js/index.d.ts: change it there. -->\n# API reference\n\n${contents(sections)}\n\n${sections.join('\n\n')}\n`;
}

/** @param {string[]} sections */
function contents(sections) {
  const titles = sections.map((text) => /^## (.*)/.exec(text)?.[1] ?? '');
  const anchor = (/** @type {string} */ title) => title.toLowerCase().replace(/[^\w\- ]/g, '').replaceAll(' ', '-');
  return titles.map((title) => `- [${title.replaceAll('`', '')}](#${anchor(title)})`).join('\n');
}

/**
 * A declaration, or those inside of it where it only says what they are added to.
 * @param {Declaration} found @param {string | undefined} byDefault @param {string} inside
 * @returns {string[]}
 */
function section(found, byDefault, inside) {
  const { kind, name, members, doc } = found;
  if (['namespace', 'module', 'global'].includes(kind)) {
    const path = kind === 'namespace' ? `${inside}${name}.` : inside;
    return members.flatMap((member) => section(member, byDefault, path));
  }
  const note = name === byDefault || /^export default/.test(found.code) ? ' (the default export)' : inside.startsWith('PouchDB.') ? ' (added to PouchDB’s types)' : '';
  const parts = [`## \`${inside}${name || 'default'}\`${note}`, doc.text, signature(found), details(doc), table(members)];
  for (const member of members) if (member.doc.example || member.doc.params.length) parts.push(`### \`${name}.${member.name}\``, details(member.doc));
  return [parts.filter(Boolean).join('\n\n')];
}

/** What the table of members does not say. @param {Declaration} declaration */
function signature({ head, members, code: whole }) {
  if (!hasTable(members)) return code(whole);
  return /^(export )?(interface|type) \w+( =)?$/.test(head) ? '' : code(`${head} { … }`);
}

/** One without a comment on any member is best shown as it is written. @param {Declaration[]} members */
function hasTable(members) {
  return members.some(({ doc }) => doc.text);
}

/** @param {Declaration['doc']} doc */
function details({ params, tags, example }) {
  const lines = params.map(([name, text]) => `- \`${name}\`: ${text}`);
  if (tags.returns) lines.push(`- returns ${tags.returns}`);
  if (tags.throws) lines.push(`- throws ${tags.throws}`);
  return [lines.join('\n'), example && (example.startsWith('```') ? example : code(example))].filter(Boolean).join('\n\n');
}

/** @param {Declaration[]} members */
function table(members) {
  return hasTable(members) ? ['| Member | |', '|---|---|', ...rows(members, '')].join('\n') : '';
}

/** @param {Declaration[]} members @param {string} path of what they are members of @returns {string[]} */
function rows(members, path) {
  return members.flatMap(({ code: whole, head, name, members: inner, doc }) => {
    const split = hasTable(inner);
    const type = path + (split ? head.replace(/:$/, '') : whole.replace(/\s+/g, ' '));
    const byDefault = doc.tags.default ?? doc.tags.defaultValue;
    const words = doc.text.replace(/\s*\n\s*/g, ' ') + (byDefault ? ` Default: ${byDefault}.` : '') + (doc.tags.deprecated !== undefined ? ' **Deprecated.**' : '');
    const row = `| \`${type.replaceAll('|', '\\|')}\` | ${words.replaceAll('|', '\\|')} |`;
    return [row, ...(split ? rows(inner, `${path}${name}.`) : [])];
  });
}

/** @param {string} text */
function code(text) {
  return `\`\`\`ts\n${text}\n\`\`\``;
}
