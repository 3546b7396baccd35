// What caused what, of one correlation.
import { h } from 'preact';
import { useMemo } from 'preact/hooks';
import { get } from '../api.js';
import { html } from '../html.js';
import { nameOf } from '../kernels.js';
import { Empty, Problems, useEach, useRecord, useRefresh } from '../parts.js';
import { merge, windowOf } from '../record.js';
import { numberText, plain } from '../text.js';

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

// Picture is the graph of one kernel. What another kernel has drawn is drawn here, by this one's server.
function Picture({ kernel, named, value, correlation, place, open }) {
	const chosen = (place.query.of ?? '') === kernel && Number(place.query.seq);
	const shown = useMemo(() => element(value.picture, (seq) => open(seq, kernel), chosen), [value, chosen, place]);
	if (value.nodes === 0) {
		return null;
	}
	return html`${named && html`<h2 class="of">${nameOf(kernel)}</h2>`}
		<div class="graph-box" tabindex="0" role="group" aria-label=${`Graph of ${plain(correlation)}${named ? ` at ${nameOf(kernel)}` : ''}`}>${shown}</div>`;
}

export function Graph({ place, go, kernels, named, open }) {
	const record = useRecord();
	const { correlation } = place.query;
	const { answers, errors, loaded, again } = useEach(correlation ? kernels : [], (kernel, signal) => get('/api/graph', { correlation, kernel }, signal), correlation ?? '');
	useRefresh(again, (row) => row.correlation === correlation);
	const recent = useMemo(() => [...new Set(merge(kernels.map((kernel) => windowOf(kernel).rows)).filter((row) => !row.own && row.correlation).map((row) => row.correlation).reverse())].slice(0, 50), [record.version, kernels.join()]);
	const sum = (member) => answers.reduce((all, one) => all + one.value[member], 0);
	return html`<section class="view" aria-label="Graph">
		<form class="filters" onSubmit=${(event) => { event.preventDefault(); go('graph', { correlation: event.target.correlation.value }); }}>
			<label>Correlation <input type="search" name="correlation" size="32" list="correlations" value=${correlation ?? ''} /></label>
			<datalist id="correlations">${recent.map((one) => html`<option key=${one} value=${one} />`)}</datalist>
			<button type="submit">Show</button>
			<span class="grow"></span>
			${answers.length > 0 && html`<span class="faint">${numberText(sum('nodes'))} nodes${sum('more') > 0 && `, ${numberText(sum('more'))} more are left out`}</span>`}
		</form>
		<${Problems} errors=${errors} />
		${!correlation && html`<${Empty}>${recent.length ? 'Choose a correlation, one of the latest or any other:' : 'No call in sight has a correlation.'}<//>
			<ul class="choices">${recent.slice(0, 12).map((one) => html`<li key=${one}><button type="button" class="link" onClick=${() => go('graph', { correlation: one })}><code>${plain(one)}</code></button></li>`)}</ul>`}
		${correlation && loaded && answers.length > 0 && sum('nodes') === 0 && html`<${Empty}>The record has no call of this correlation.<//>`}
		${answers.map(({ kernel, value }) => html`<${Picture} key=${kernel} kernel=${kernel} named=${named} value=${value} correlation=${correlation} place=${place} open=${open} />`)}
	</section>`;
}
