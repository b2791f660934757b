// A memory plugin of the host that says a line in each way there is: as the memory, beside it, and prepared before a run.
export const LINES = ['The memory of this run is kept in walnut boxes.', 'Beside it lies a list of the boxes.', 'The boxes were counted before this run.'];

export default {
  id: 'e2e-memory',
  name: 'Memory of the end-to-end run',
  description: 'Says a line in each of the three ways that the host has.',
  register(api) {
    const [memory, beside, prepared] = LINES;
    api.registerMemoryCapability({ promptBuilder: () => ['## Boxes', memory, ''] });
    api.registerMemoryPromptSupplement(() => [beside]);
    api.registerMemoryPromptPreparation(async () => [prepared]);
  },
};
