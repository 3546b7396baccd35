// The kernels of the cluster: the one that this page is of, whose name here is '', and others, which it asks through that one.
import { useEffect, useState } from 'preact/hooks';
import { get } from './api.js';
import { html } from './html.js';
import { feeds } from './record.js';

const ALL = '*'; // the choice of all kernels; no kernel has that name

// state has the name of the page's kernel, '' where it is in no cluster, and those of the others.
export const state = { own: '', others: [] };

// useKernels reads which kernels there are.
export function useKernels() {
	const [, show] = useState(0);
	useEffect(() => {
		get('/api/kernels').then((value) => {
			Object.assign(state, value);
			show(1);
		}, () => {}); // the page of one kernel needs none
	}, []);
	return state;
}

export const nameOf = (kernel) => kernel || state.own;

// chosen are the kernels that a place of the page is about.
export function chosen({ query }) {
	if (query.kernel === ALL) {
		return ['', ...state.others];
	}
	return [query.kernel ?? ''];
}

// named says whether what is shown is shown with the name of its kernel.
export const named = ({ query }) => Boolean(query.kernel);

// keyOf tells entries and processes of different kernels apart, by a number.
export const keyOf = (kernel, number) => (kernel ? `${kernel}-${number}` : number);

export const Kernel = ({ name }) => html`<span class="kernel">${nameOf(name)}</span> `;

// Choice chooses the kernel that is shown, or all.
export function Choice({ place, go }) {
	if (!state.own) {
		return null;
	}
	const away = (name) => (feeds.get(name)?.live === 'away' ? ' (away)' : '');
	return html`<label class="choice"><span class="unseen">Kernel</span><select value=${place.query.kernel ?? ''}
		onChange=${(event) => go(place.name, { kernel: event.target.value })}>
		<option value="">${state.own}</option>
		${state.others.map((name) => html`<option key=${name} value=${name}>${name}${away(name)}</option>`)}
		${state.others.length > 0 && html`<option value=${ALL}>all kernels</option>`}
	</select></label>`;
}

// Notices name the kernels that do not answer, and say what is not done here.
export function Notices({ place }) {
	const asked = chosen(place).filter((kernel) => kernel !== '');
	const away = asked.filter((kernel) => feeds.get(kernel)?.live === 'away');
	if (asked.length === 0) {
		return null;
	}
	return html`<div class="notices" role="status">
		${away.map((kernel) => html`<p key=${kernel} class="problem"><b>${kernel}</b>: ${feeds.get(kernel).why}. It is asked again.</p>`)}
		<p class="faint">${asked.length > 1 || place.query.kernel === ALL ? 'What other kernels do' : `What ${asked[0]} does`} is asked for every few seconds, while this page is in sight.
			Approve, grant and pause in the console of the kernel itself.${place.query.kernel === ALL && ' The times are those of the hosts, whose clocks differ.'}</p>
	</div>`;
}
