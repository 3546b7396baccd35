// Markup as tagged templates: values in them become text, never markup.
import { h } from 'preact';
import htm from 'htm';

export const html = htm.bind(h);
