// The page: who may see it, which view is shown, and the bar above it.
import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, get, loggedIn, login, logout, onEnd } from './api.js';
import { Detail } from './detail.js';
import { html } from './html.js';
import { Choice, chosen, keyOf, nameOf, named, Notices, useKernels } from './kernels.js';
import { Ask, Count, Json, Problem, useLoad, useRecord, useRefresh } from './parts.js';
import { follow, look } from './record.js';
import { numberText, plain, plainJSON } from './text.js';
import { Approvals } from './views/approvals.js';
import { Budgets } from './views/budgets.js';
import { Denials } from './views/denials.js';
import { Graph } from './views/graph.js';
import { Past } from './views/past.js';
import { Processes } from './views/processes.js';
import { Search } from './views/search.js';
import { Timeline } from './views/timeline.js';

const VIEWS = [
	['processes', 'Processes', Processes],
	['timeline', 'Timeline', Timeline],
	['approvals', 'Approvals', Approvals],
	['denials', 'Denials', Denials],
	['graph', 'Graph', Graph],
	['budgets', 'Budgets', Budgets],
	['search', 'Search', Search],
	['past', 'Past', Past],
];

// placeOf reads which view the address names, and what of it.
function placeOf() {
	const [name, query] = location.hash.replace(/^#\/?/, '').split('?');
	return { name: VIEWS.some(([view]) => view === name) ? name : 'processes', query: Object.fromEntries(new URLSearchParams(query)) };
}

function usePlace() {
	const [place, set] = useState(placeOf);
	useEffect(() => {
		const changed = () => set(placeOf());
		addEventListener('hashchange', changed);
		return () => removeEventListener('hashchange', changed);
	}, []);
	return place;
}

// go shows a view, of the same kernels as before unless the query names others.
function go(name, query = {}) {
	location.hash = addressOf(name, { kernel: placeOf().query.kernel, ...query });
}

function addressOf(name, query) {
	const params = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== ''));
	return params.size ? `/${name}?${params}` : `/${name}`;
}

const THEMES = ['auto', 'light', 'dark'];

function Theme() {
	const [theme, set] = useState(localStorage.getItem('pwos.theme') ?? 'auto');
	useEffect(() => {
		document.documentElement.dataset.theme = theme;
		localStorage.setItem('pwos.theme', theme);
	}, [theme]);
	const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
	return html`<button type="button" class="quiet" aria-label="Theme: ${theme}. Change to ${next}" title="Theme: ${theme}" onClick=${() => set(next)}>
		${{ auto: '◐', light: '☀', dark: '☾' }[theme]}</button>`;
}

// Verify checks the journal when the page is opened, and when it is clicked.
function Verify() {
	const { value, error, busy, again } = useLoad((signal) => call('Audit.Verify', {}, signal), 0);
	const state = busy ? 'busy' : error ? 'unknown' : value.ok ? 'good' : 'bad';
	const text = { busy: 'verifying…', unknown: 'not verified', good: 'verified', bad: 'broken' }[state];
	const title = error?.message ?? value?.broken ?? (value && `${numberText(value.entries)} entries, head ${value.head}`);
	return html`<button type="button" class="badge ${state}" title=${title} onClick=${again}><span class="unseen">Journal ${nameOf('') && `of ${nameOf('')}`} </span>
		<span aria-hidden="true">${{ busy: '…', unknown: '?', good: '✓', bad: '✕' }[state]}</span> ${text}
		${value?.ok && html`<span class="wide"> ${numberText(value.entries)}</span>`}<span class="unseen">, verify again</span></button>`;
}

function Live() {
	const record = useRecord();
	const now = Math.floor(Date.now() / 1000);
	const recent = record.seconds.filter((bucket) => bucket.at > now - 10);
	const rate = recent.reduce((sum, bucket) => sum + bucket.calls, 0) / 10;
	const text = { live: 'live', connecting: 'connecting…', away: 'away' }[record.live];
	return html`<span class="live ${record.live}" role="status" title=${record.why}><span class="dot" aria-hidden="true"></span>${text}
		${record.live === 'live' && html`<span class="wide" aria-hidden="true"> ${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s</span>`}</span>`;
}

function Shell() {
	const place = usePlace();
	const record = useRecord();
	useKernels();
	const asked = chosen(place);
	const [question, ask] = useState(null);
	const [said, say] = useState('');
	const focus = useRef(null);
	const waiting = useLoad((signal) => get('/api/approvals', {}, signal), 0);
	useRefresh(waiting.again, (row) => row.type.startsWith('Approval.'), 300);
	const approvals = waiting.value?.approvals ?? [];
	const denied = record.rows.reduce((n, row) => n + (row.status === 'denied' ? 1 : 0), 0);
	const counts = { approvals: approvals.filter((one) => one.state === 'waiting').length, denials: denied };
	useEffect(() => {
		const ending = new AbortController();
		follow(ending.signal);
		return () => ending.abort();
	}, []);
	useEffect(() => {
		const ending = new AbortController();
		asked.filter((kernel) => kernel !== '').forEach((kernel) => look(kernel, ending.signal));
		return () => ending.abort();
	}, [asked.join()]);
	useEffect(() => {
		document.querySelector('.bar nav a[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' }); // it scrolls on a narrow screen
		document.title = `${VIEWS.find(([name]) => name === place.name)[1]} · pwos console`;
	}, [place.name]);
	useEffect(() => {
		const keys = (event) => {
			const typing = event.target.closest?.('input, select, textarea, dialog');
			if (typing || event.ctrlKey || event.altKey || event.metaKey) {
				return;
			}
			const at = Number(event.key) - 1;
			if (VIEWS[at]) {
				go(VIEWS[at][0]);
			} else if (event.key === '/') {
				event.preventDefault();
				const field = document.querySelector('input[type=search]');
				field ? field.focus() : go('search');
			} else if (event.key === 'Escape' && place.query.seq) {
				open(undefined);
			}
		};
		addEventListener('keydown', keys);
		return () => removeEventListener('keydown', keys);
	});
	const open = (seq, kernel) => go(place.name, { ...place.query, seq, of: seq && kernel });
	const grant = (row) => ask({
		title: `Grant ${plain(row.grant.allowed_syscalls.join(', '))} to ${row.who}?`,
		body: html`<p>This is added to what pid ${row.pid} was granted; nothing is taken away.</p><${Json} text=${plainJSON(JSON.stringify(row.grant))} label="The grant" />`,
		verb: 'Grant',
		act: async () => {
			const token = await call('Capability.Grant', row.grant);
			say(token.warning ? `Granted, but: ${token.warning}` : `Granted: pid ${row.pid} may call ${plain(row.grant.allowed_syscalls.join(', '))}`);
		},
	});
	const View = VIEWS.find(([name]) => name === place.name)[2];
	return html`
		<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); focus.current.focus(); }}>Skip to the view</a>
		<header class="bar">
			<h1><span class="logo" aria-hidden="true"></span>pwos</h1>
			<${Choice} place=${place} go=${go} />
			<nav aria-label="Views"><ul>${VIEWS.map(([name, title], i) => html`
				<li key=${name}><a href=${`#${addressOf(name, { kernel: place.query.kernel })}`} aria-current=${name === place.name ? 'page' : undefined} title="Key ${i + 1}">${title}
					<${Count} n=${counts[name] ?? 0} label=${name === 'approvals' ? 'waiting' : 'in sight'} /></a></li>`)}</ul></nav>
			<div class="bar-end"><${Live} /><${Verify} /><${Theme} />
				<button type="button" class="quiet" onClick=${logout}>Log out</button></div>
		</header>
		<main id="main" class=${place.query.seq ? 'with-detail' : ''} ref=${focus} tabindex="-1">
			<div class="stack"><${Notices} place=${place} />
			<${View} place=${place} go=${go} kernels=${asked} named=${named(place)} open=${open} chosen=${place.query.seq && keyOf(place.query.of, Number(place.query.seq))} ask=${ask} say=${say} grant=${grant} approvals=${waiting} /></div>
			${place.query.seq && html`<${Detail} key=${`${place.query.of} ${place.query.seq}`} seq=${place.query.seq} kernel=${place.query.of ?? ''} named=${named(place)} open=${open} close=${() => open(undefined)} grant=${grant} go=${go} />`}
		</main>
		<div class="said" role="status">${said && html`<span>${said}</span> <button type="button" class="quiet" aria-label="Dismiss" onClick=${() => say('')}>✕</button>`}</div>
		<${Ask} question=${question} onDone=${() => ask(null)} />`;
}

// Gate is what is shown to who has not logged in.
function Gate({ error }) {
	return html`<main class="gate"><h1><span class="logo" aria-hidden="true"></span>pwos console</h1>
		<${Problem} error=${error} />
		<p>${error ? 'Each link logs one page in, once.' : 'This page is not logged in, or its session has ended.'}</p>
		<p>Press Enter where <code>pwos console</code> runs, or start it again, and open the file that it names.</p></main>`;
}

function App({ error }) {
	const [inside, set] = useState(loggedIn());
	useEffect(() => onEnd(() => set(false)), []);
	return inside ? html`<${Shell} />` : html`<${Gate} error=${error} />`;
}

// start takes the secret out of the address before anything else, so that it stays neither there nor in the history.
async function start() {
	const secret = location.hash.slice(1);
	let error = null;
	if (/^[A-Z0-9]{20,}$/.test(secret)) {
		history.replaceState(null, '', '/');
		try {
			await login(secret);
		} catch (err) {
			error = err;
		}
	}
	document.getElementById('app').replaceChildren();
	render(html`<${App} error=${error} />`, document.getElementById('app'));
}

start();
