// Mistakes only; how code looks is not decided here.
import js from '@eslint/js';
import globals from 'globals';

export default [
  { ignores: ['dist', 'pkg', 'target', 'www/dist', '.tools'] },
  js.configs.recommended,
  {
    rules: {
      'no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true, caughtErrors: 'none' }],
    },
  },
  {
    // The plugin runs in browsers, in workers and in Node: only what all have.
    files: ['js/**/*.js'],
    languageOptions: { globals: globals['shared-node-browser'] },
  },
  {
    files: ['scripts/**', 'tests/**', 'demo/**', 'bench/**'],
    languageOptions: { globals: globals.node },
  },
  {
    // Functions in these files are also handed to a page.
    files: ['tests/browser/**', 'tests/packaging/**', 'bench/**', 'www/**'],
    languageOptions: { globals: { ...globals.browser, PouchDB: 'readonly', fastSync: 'readonly' } },
  },
];
