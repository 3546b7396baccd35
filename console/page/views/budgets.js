// What agents may use up, and how fast they do.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { call } from '../api.js';
import { html } from '../html.js';
import { nameOf } from '../kernels.js';
import { Empty, Meter, Problem, useLoad, useRecord, useRefresh } from '../parts.js';
import { feeds, rates } from '../record.js';
import { numberText, plain, spanText } from '../text.js';
import { Plot } from './plot.js';

const KINDS = ['calls', 'fetches', 'tokens', 'usd'];
const SAMPLES = 300;

export function Budgets({ kernels, named, go }) {
	return html`<section class="view scroll" aria-label="Budgets and rates">${kernels.map((kernel) => html`
		<${Kernel} key=${kernel} kernel=${kernel} named=${named} go=${go} />`)}</section>`;
}

// Kernel is what the agents of one kernel may use up. Rates are of the page's kernel, whose calls it sees as they come.
function Kernel({ kernel, named, go }) {
	const record = useRecord();
	const [now, tick] = useState(Date.now());
	const { value, error, again } = useLoad((signal) => call('Budget.Show', {}, signal, kernel), feeds.get(kernel)?.live);
	const metrics = useLoad((signal) => call('Audit.Metrics', {}, signal, kernel), feeds.get(kernel)?.live);
	useRefresh(() => {
		again();
		metrics.again();
	}, (row) => row.kernel === kernel, 2000);
	useEffect(() => {
		const timer = setInterval(() => tick(Date.now()), 1000);
		return () => clearInterval(timer);
	}, []);
	const rate = useMemo(() => (kernel ? null : rates(now)), [kernel, now]);
	const budgets = value?.budgets ?? [];
	const spent = useSpent(value);
	const types = Object.entries(metrics.value?.latency ?? {}).map(([type, took]) => ({ type, ...took })).sort((a, b) => b.p99_us - a.p99_us).slice(0, 12);
	return html`
		${named && html`<h2 class="of">${nameOf(kernel)}</h2>`}
		<${Problem} error=${error ?? metrics.error} />
		<div class="grid">
			${!kernel && html`<${Plot} title="Calls a second, the last five minutes" data=${rate} series=${[['calls', '--accent'], ['refused', '--bad']]} />`}
			${spent.data && html`<${Plot} key=${spent.names.join()} title="Calls spent, since this page shows them" data=${spent.data} series=${spent.names.map((name, i) => [name, ['--accent', '--good', '--warn', '--bad', '--other'][i % 5]])} />`}
		</div>
		<h2>Budgets</h2>
		${value && budgets.length === 0 && html`<${Empty}>No process that lives was given a budget: <code>pwos run --budget calls=500 …</code> gives one.<//>`}
		<div class="grid">${budgets.map((one) => html`<article class="card" key=${one.pid} aria-label="Budget of ${plain(one.agent_id)}">
			<header><h3><button type="button" class="link" onClick=${() => go('processes', { pid: one.pid, of: kernel })}><span class="seq">${one.pid}</span> <b>${plain(one.agent_id)}</b></button></h3>
				${one.deadline && html`<span class="faint">${spanText(one.deadline - now)} left</span>`}</header>
			${KINDS.filter((kind) => one[kind]).map((kind) => html`<${Meter} key=${kind} label=${kind} share=${1 - one[kind].left / (one[kind].given || 1)}
				text=${`${one[kind].spent} spent, ${one[kind].left} of ${one[kind].given} left`} />`)}
		</article>`)}</div>
		<h2>Latency</h2>
		<div class="table-box" tabindex="0" role="region" aria-label=${`Latency by syscall${named ? ` at ${nameOf(kernel)}` : ''}`}><table><thead><tr><th>Syscall</th><th class="num">p50, µs</th><th class="num">p99, µs</th></tr></thead>
			<tbody>${types.map((row) => html`<tr key=${row.type}><td>${plain(row.type)}</td><td class="num">${numberText(row.p50_us)}</td><td class="num">${numberText(row.p99_us)}</td></tr>`)}</tbody></table></div>
		<p class="faint">${numberText(metrics.value?.total_calls ?? 0)} calls in all, ${numberText(metrics.value?.denied_calls ?? 0)} refused${!kernel && `; ${numberText(record.rows.length)} entries in sight`}.</p>`;
}

// useSpent keeps what the five largest budgets have spent at each look.
function useSpent(value) {
	const looks = useRef([]);
	return useMemo(() => {
		if (!value) {
			return { data: null, names: [] };
		}
		looks.current.push({ at: Date.now() / 1000, spent: new Map(value.budgets.filter((one) => one.calls).map((one) => [`${plain(one.agent_id)} (${one.pid})`, Number(one.calls.spent)])) });
		looks.current = looks.current.slice(-SAMPLES);
		const names = [...looks.current.at(-1).spent].sort((a, b) => b[1] - a[1]).slice(0, 5).map(([name]) => name).sort();
		if (names.length === 0 || looks.current.length < 2) { // one look is no line
			return { data: null, names };
		}
		return { names, data: [looks.current.map((look) => look.at), ...names.map((name) => looks.current.map((look) => look.spent.get(name) ?? null))] };
	}, [value]);
}
