// The part that is loaded with the first replication. Everything behind `load()`
// is reached from here.
export { open } from './links.js';
export { bulkGet, getDocs } from './get-docs.js';
export { ready } from './wasm.js';
