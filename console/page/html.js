// Markup as tagged templates: what is put into them is text, never markup.
import { h } from 'preact';
import htm from 'htm';

export const html = htm.bind(h);
