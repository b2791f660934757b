// The names this plugin goes by, and why: see "Names" in README.md.

/** The npm package, which texts for people begin with. */
export const PACKAGE = "openclaw-openbrain-context";
/** The plugin, the engine and the value of the host's slot. They are equal because the host takes them for equal when it installs and uninstalls. */
export const PLUGIN_ID = "openbrain";
/** The chat command. The host keeps /context for itself and refuses a plugin that wants it. */
export const COMMAND = "openbrain";
export const VERSION = "0.1.0";

/** What is said where the engine "openbrain" lacks an address or a key. */
export const MISSING_CREDENTIALS = `${PACKAGE}: baseUrl and apiKey are required. Set them in your openclaw.json plugin config.`;
