// What caused what, of one correlation.
import { h } from 'preact';
import { useMemo } from 'preact/hooks';
import { get } from '../api.js';
import { html } from '../html.js';
import { Empty, Problem, useLoad, useRecord, useRefresh } from '../parts.js';
import { numberText } from '../text.js';

// element makes what the server has drawn, [name, attributes, children], element by element.
function element(node, open, chosen) {
	if (typeof node === 'string') {
		return node;
	}
	const [name, { seq, ...attributes }, children] = node;
	const inside = children.map((child) => element(child, open, chosen));
	if (seq === undefined) {
		return h(name, name === 'svg' ? { ...attributes, role: 'group', 'aria-label': 'Causation graph' } : attributes, inside);
	}
	return h(name, {
		...attributes, class: `${attributes.class} ${seq === chosen ? 'chosen' : ''}`, 'data-seq': seq, tabindex: 0, role: 'button',
		onClick: () => open(seq), onKeyDown: (event) => (event.key === 'Enter' || event.key === ' ') && (event.preventDefault(), open(seq)),
	}, inside);
}

export function Graph({ place, go, open, chosen }) {
	const record = useRecord();
	const { correlation } = place.query;
	const { value, error, again } = useLoad((signal) => (correlation ? get('/api/graph', { correlation }, signal) : Promise.resolve(null)), correlation ?? '');
	useRefresh(again, (row) => row.correlation === correlation);
	const recent = useMemo(() => [...new Set(record.rows.filter((row) => !row.own && row.correlation).map((row) => row.correlation).reverse())].slice(0, 50), [record.version]);
	const shown = useMemo(() => value && element(value.picture, open, chosen), [value, chosen, place]);
	return html`<section class="view" aria-label="Graph">
		<form class="filters" onSubmit=${(event) => { event.preventDefault(); go('graph', { correlation: event.target.correlation.value }); }}>
			<label>Correlation <input type="search" name="correlation" size="32" list="correlations" value=${correlation ?? ''} /></label>
			<datalist id="correlations">${recent.map((one) => html`<option key=${one} value=${one} />`)}</datalist>
			<button type="submit">Show</button>
			<span class="grow"></span>
			${value && html`<span class="faint">${numberText(value.nodes)} nodes${value.more > 0 && `, ${numberText(value.more)} more are left out`}</span>`}
		</form>
		<${Problem} error=${error} />
		${!correlation && html`<${Empty}>${recent.length ? 'Choose a correlation, one of the latest or any other:' : 'No call in sight has a correlation.'}<//>
			<ul class="choices">${recent.slice(0, 12).map((one) => html`<li key=${one}><button type="button" class="link" onClick=${() => go('graph', { correlation: one })}><code>${one}</code></button></li>`)}</ul>`}
		${value && value.nodes === 0 && html`<${Empty}>The record has no call of this correlation.<//>`}
		${value?.nodes > 0 && html`<div class="graph-box" tabindex="0" role="group" aria-label="Graph of ${correlation}">${shown}</div>`}
	</section>`;
}
