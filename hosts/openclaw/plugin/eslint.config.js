import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", ".build", "node_modules"] },
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { project: ["tsconfig.test.json"], tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Numbers in texts are what they look like.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // The host's methods are promises by contract, also where there is nothing to wait for.
      "@typescript-eslint/require-await": "off",
    },
  },
  {
    files: ["test/**"],
    rules: {
      // node:test returns promises that nobody has to wait for.
      "@typescript-eslint/no-floating-promises": "off",
    },
  },
  { files: ["eslint.config.js"], extends: [tseslint.configs.disableTypeChecked] },
);
