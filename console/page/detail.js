// A call whole: what was asked, its outcome, its causes and its effects.
import { get } from './api.js';
import { html } from './html.js';
import { Kernel, nameOf } from './kernels.js';
import { Json, Mark, Problem, useLoad } from './parts.js';
import { momentText, plain, tookText } from './text.js';

const Related = ({ title, rows, open }) => rows.length > 0 && html`
	<h3>${title}</h3>
	<ul class="related">${rows.map((row) => html`
		<li key=${row.seq}><button type="button" class="link" onClick=${() => open(row.seq)}>
			<span class="seq">${row.seq}</span> <span class="who">${row.who}</span> <b>${row.type}</b> ${row.asked}</button> <${Mark} status=${row.status} /></li>`)}</ul>`;

const LABELS = { who: 'Caller', door: 'Door', authority: 'Authority', approval: 'Approval', rule: 'Rule', hash: 'Hash', previous: 'Previous', signed: 'Signed' };
const HASHES = new Set(['hash', 'previous']);

// Detail is the panel of one call. open shows another one, grant asks for the grant that would let it through.
export function Detail({ seq, kernel, named, open: show, close, grant, go }) {
	const { value, error, busy } = useLoad((signal) => get(`/api/entry/${seq}`, { kernel }, signal), `${kernel} ${seq}`);
	const open = (other) => show(other, kernel);
	const row = value?.row;
	return html`
		<aside class="detail" aria-label=${`Call ${seq}${named ? ` of ${nameOf(kernel)}` : ''}`} aria-busy=${busy}>
			<header>
				<h2>${named && html`<${Kernel} name=${kernel} />`}<span class="seq">#${row?.seq ?? seq}</span> ${row?.type}</h2>
				<button type="button" class="close" aria-label="Close the call" onClick=${close}>✕</button>
			</header>
			<${Problem} error=${error} />
			${row && html`
				<div class="detail-body">
				<p class="line"><${Mark} status=${row.status} /> ${row.asked}${row.outcome && html`<span class="came"> → ${row.outcome}</span>`}</p>
				${((row.grant && !kernel) || row.correlation) && html`<div class="buttons">
					${row.grant && !kernel && html`<button type="button" class="primary" onClick=${() => grant(row)}>Grant…</button>`}
					${row.correlation && html`<button type="button" onClick=${() => go('timeline', { correlation: row.correlation })}>Its correlation</button>
						<button type="button" onClick=${() => go('graph', { correlation: row.correlation })}>Graph</button>`}
				</div>`}
				<dl class="facts">
					<dt>When</dt><dd>${momentText(row.time)} <span class="faint">tick ${value.tick}</span></dd>
					<dt>Took</dt><dd>${tookText(row.us)}</dd>
					${row.error && html`<dt>Error</dt><dd><code>${plain(row.error)}</code></dd>`}
					${row.intent && html`<dt>Intent</dt><dd>entry ${row.intent}</dd>`}
					<dt>Message</dt><dd><code>${plain(row.id)}</code></dd>
					${row.correlation && html`<dt>Correlation</dt><dd><code>${plain(row.correlation)}</code></dd>`}
					${row.causation && html`<dt>${row.claimed ? 'Claimed cause' : 'Cause'}</dt><dd><code>${plain(row.causation)}</code>${value.later ? ` is none: entry ${value.later} was called later` : ''}</dd>`}
					${value.facts.map(([name, text], i) => html`<dt key=${`t${i}`}>${LABELS[name] ?? name}</dt><dd key=${`d${i}`}>${HASHES.has(name) ? html`<code>${text}</code>` : text}</dd>`)}
				</dl>
				${value.message && html`<p class="problem">${value.message}</p>`}
				${value.request && html`<h3>Data</h3><${Json} text=${value.request} label="Data of the call" />`}
				${value.answer && value.answer !== 'null' && html`<h3>Answer</h3><${Json} text=${value.answer} label="Answer" />`}
				<${Related} title="Caused by" rows=${value.causes} open=${open} />
				<${Related} title="Claims to be caused by" rows=${value.claims} open=${open} />
				<${Related} title="Effects" rows=${value.effects} open=${open} />
				${value.more && html`<p class="faint">There are more effects: see its correlation.</p>`}
				</div>`}
		</aside>`;
}
