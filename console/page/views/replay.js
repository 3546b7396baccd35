export const Replay = () => null;
