export const Graph = () => null;
