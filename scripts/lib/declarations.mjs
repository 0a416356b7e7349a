// Reads type definitions as written by hand: declarations with their comments, and the members of those that have some.
// It does not know what becomes of them. It splits text and understands no types, so it takes well-formed definitions
// (tsc has seen them) whose members end with a semicolon.

/** @typedef {{text: string, params: [name: string, text: string][], tags: Record<string, string>, example: string}} Doc */
/** @typedef {{code: string, doc: Doc, name: string, kind: string, head: string, members: Declaration[]}} Declaration */

/** Declarations whose last brace ends them; the others end with a semicolon. */
const endsWithBrace = /^(?:export |declare |default |abstract )*(?:interface|namespace|module|class|enum|global)\b/;
const hasMembers = /^(?:export |declare |default |abstract )*(?:interface|namespace|module|class|global)\b|^(?:export |declare )*(?:type|const) [^=;{(]*(?:=|:)\s*\{[^]*\}$|^(?:readonly )?\w+\??:\s*\{[^]*\}$/;

/**
 * @param {string} source
 * @returns {Declaration[]}
 */
export function declarations(source) {
  /** @type {Declaration[]} */
  const found = [];
  let comment = '';
  for (let at = 0; at < source.length;) {
    const rest = source.slice(at);
    const space = /^\s+/.exec(rest)?.[0];
    const noted = /^(?:\/\*[^]*?\*\/|\/\/.*)/.exec(rest)?.[0];
    if (space) {
      at += space.length;
    } else if (noted) {
      comment = noted.startsWith('/**') ? noted : '';
      at += noted.length;
    } else {
      const code = statement(rest);
      at += code.length;
      const text = code.replace(/;$/, '').trim();
      if (text) found.push(declaration(text, comment));
      comment = '';
    }
  }
  return found;
}

/** What is neither of these brackets nor a semicolon, nor hides some, is passed over. */
const parts = /\/\*[^]*?\*\/|\/\/.*|'(?:\\.|[^'])*'|"(?:\\.|[^"])*"|`(?:\\.|[^`])*`|[{}()[\];]/g;

/** From the beginning of `text` to the end of the declaration there. @param {string} text */
function statement(text) {
  let depth = 0;
  for (const { 0: part, index } of text.matchAll(parts)) {
    if ('{(['.includes(part)) depth++;
    if ('})]'.includes(part)) depth--;
    // A brace that something follows is part of a type.
    const closes = part === '}' && endsWithBrace.test(text) && !/^\s*[>,&|)[]/.test(text.slice(index + 1));
    if (depth === 0 && (part === ';' || closes)) return text.slice(0, index + 1);
  }
  return text;
}

/** Where the braces open that end the declaration. @param {string} code */
function bodyOf(code) {
  const open = [];
  let body = 0;
  for (const { 0: part, index } of code.matchAll(parts)) {
    if ('{(['.includes(part)) open.push(index);
    if ('})]'.includes(part)) body = open.pop() ?? 0;
  }
  return body;
}

/** @param {string} code @param {string} comment @returns {Declaration} */
function declaration(code, comment) {
  const members = hasMembers.test(code) ? declarations(code.slice(bodyOf(code) + 1, code.lastIndexOf('}'))) : [];
  const words = code.replace(/^(?:export |declare |abstract |readonly |static |default (?=function|class|interface))+/, '');
  const [, kind = '', name = ''] = /^(default|function|const|let|interface|type|namespace|module|class|enum|import|global)\b\s*['"]?([\w$.-]*)/.exec(words) ?? [];
  return {
    code, members, kind,
    doc: document(comment),
    name: kind ? name : /^(?:(?:get|set) )?([\w$]+|\[[^\]]*\])/.exec(words)?.[1] ?? '',
    head: members.length ? code.slice(0, bodyOf(code)).trim() : code,
  };
}

/** @param {string} comment @returns {Doc} */
function document(comment) {
  const lines = comment.replace(/^\/\*\*|\*\/$/g, '').split('\n').map((line) => line.replace(/^\s*\* ?/, '').trimEnd());
  const [text, ...tagged] = lines.join('\n').trim().split(/^@/m);
  /** @type {Doc} */
  const doc = { text: plain(text), params: [], tags: {}, example: '' };
  for (const tag of tagged) {
    const [, name, body] = /** @type {RegExpExecArray} */ (/^(\w+)\s*([^]*)$/.exec(tag));
    const param = name === 'param' && /^([\w$.]+)\s*(?:-\s*)?([^]*)$/.exec(body);
    if (param) doc.params.push([param[1], flat(param[2])]);
    else if (name === 'example') doc.example = body.trim();
    else doc.tags[name] = flat(body.replace(/^\{(.*?)\}\s*/, '`$1`: '));
  }
  return doc;
}

/** @param {string} text */
const plain = (text) => text.replace(/\{@link (?:[^|}]*\|\s*)?([^}]*)\}/g, '`$1`').trim();
/** On one line. @param {string} text */
const flat = (text) => plain(text).replace(/\s*\n\s*/g, ' ');
