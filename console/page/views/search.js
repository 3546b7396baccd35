export const Search = () => null;
