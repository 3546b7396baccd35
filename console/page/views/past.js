// The state as of an entry: a slider over the record.
import { useEffect, useState } from 'preact/hooks';
import { past } from '../api.js';
import { html } from '../html.js';
import { Empty, Json, Problem, useLoad, useRecord } from '../parts.js';
import { momentText, numberText } from '../text.js';

const REST = 200; // ms that the slider rests before the kernel is asked

// useRested is a value once it has not changed for a while.
function useRested(value) {
	const [rested, set] = useState(value);
	useEffect(() => {
		const timer = setTimeout(() => set(value), REST);
		return () => clearTimeout(timer);
	}, [value]);
	return rested;
}

export function Past(props) {
	if (!props.kernels.includes('')) {
		return html`<section class="view" aria-label="Past"><${Empty}>The past of ${props.kernels[0]} is in its own console.<//></section>`;
	}
	return html`<${Replay} ...${props} />`;
}

function Replay({ place, go, open }) {
	const record = useRecord();
	const { key = '', pid = '' } = place.query;
	const last = Math.max(1, record.last, Number(place.query.until) || 0);
	const [seq, slide] = useState(Number(place.query.until) || 0); // 0: the newest
	const [how, progress] = useState(null);
	const until = Math.min(last, seq || last);
	const asked = useRested(seq || 0);
	useEffect(() => {
		const named = Number(place.query.until) || 0;
		if (named !== seq) {
			slide(named);
		}
	}, [place.query.until]);
	useEffect(() => {
		if (asked > 0 && String(asked) !== place.query.until) {
			go('past', { ...place.query, until: asked });
		}
	}, [asked]);
	const { value, error, busy } = useLoad((signal) => {
		progress(null);
		if (asked === 0) {
			return Promise.resolve(null);
		}
		return past({ until: asked, ...(key && { key }), ...(pid && { pid }) }, progress, signal);
	}, `${asked} ${pid} ${key}`);
	const look = (event) => {
		event.preventDefault();
		go('past', { ...place.query, until: until, key: event.target.key.value.trim(), pid: event.target.key.value.trim() ? '' : event.target.pid.value.trim() });
	};
	const state = busy && how ? `${numberText(how.done)} of ${numberText(how.of)} entries` : busy ? 'reading…' : '';
	return html`<section class="view" aria-label="Past">
		<form class="filters" onSubmit=${look}>
			<label class="grow">As of entry <input type="range" name="until" min="1" max=${last} value=${until} aria-valuetext=${`entry ${until} of ${last}`} onInput=${(event) => slide(Number(event.target.value))} /></label>
			<label>Entry <input type="text" inputmode="numeric" size="8" name="entry" value=${until} onChange=${(event) => slide(Math.min(last, Math.max(1, Number(event.target.value) || 1)))} /></label>
			<label>Key <input type="text" name="key" size="20" value=${key} placeholder="notes/1" /></label>
			<label>Pid <input type="text" inputmode="numeric" name="pid" size="5" value=${pid} /></label>
			<button type="submit" class="primary">Show</button>
			<span class="faint" role="status">${state}</span>
		</form>
		<${Problem} error=${busy ? null : error} />
		${asked === 0 && html`<${Empty}>Move the slider, or choose an entry: the state after it is shown. The kernel goes on meanwhile, and nothing is changed.<//>`}
		${value && !error && html`<div class="past ${busy ? 'stale' : ''}" aria-busy=${busy}>
			<p>After <button type="button" class="link" onClick=${() => open(value.seq, '')}>entry ${value.seq}</button>, ${momentText(value.time)}${key && html`, the key <code>${key}</code> was`}${pid && !key && `, process ${pid} was`}</p>
			${value.value !== undefined ? html`<${Json} text=${value.value} label="The value then" />`
				: html`<dl class="facts">${value.facts.filter(([name]) => name !== 'seq' && name !== 'time').map(([name, text], i) => html`<dt key=${`t${i}`}>${name}</dt><dd key=${`d${i}`}>${text}</dd>`)}</dl>`}
		</div>`}
	</section>`;
}
