// The questions that rules ask, with exactly what is asked about.
import { useEffect, useState } from 'preact/hooks';
import { call, get } from '../api.js';
import { html } from '../html.js';
import { Kernel, nameOf } from '../kernels.js';
import { Empty, Json, Problem, Problems, useEach, useRefresh } from '../parts.js';
import { momentText, plain, spanText } from '../text.js';

const SPANS = [['', 'once'], ['600', 'for 10 minutes'], ['3600', 'for an hour'], ['86400', 'for a day']];

export function Approvals({ approvals, kernels, named, go, say }) {
	const abroad = useEach(kernels.filter((kernel) => kernel !== ''), (kernel, signal) => get('/api/approvals', { kernel }, signal), 0);
	useRefresh(abroad.again, (row) => row.kernel !== '' && row.type.startsWith('Approval.'), 300);
	const own = kernels.includes('') ? (approvals.value?.approvals ?? []).map((one) => ({ ...one, kernel: '' })) : [];
	const all = own.concat(abroad.answers.flatMap(({ kernel, value }) => value.approvals.map((one) => ({ ...one, kernel }))));
	const keyOf = (one) => `${one.kernel} ${one.id}`;
	const waiting = all.filter((one) => one.state === 'waiting');
	const others = all.filter((one) => one.state !== 'waiting');
	return html`<section class="view scroll" aria-label="Approvals">
		<${Problem} error=${approvals.error} /><${Problems} errors=${abroad.errors} />
		${approvals.value && (abroad.loaded || own.length > 0) && waiting.length === 0 && html`<${Empty}>No call waits for an approval.<//>`}
		${waiting.map((one) => html`<${Question} key=${keyOf(one)} question=${one} named=${named} go=${go} say=${say} again=${approvals.again} />`)}
		${others.length > 0 && html`<h2>Answered</h2><div class="table-box" tabindex="0" role="region" aria-label="Answered questions"><table>
			<thead><tr><th>Question</th><th>State</th><th>Agent</th><th>Call</th><th>Rule</th><th>Decided</th></tr></thead>
			<tbody>${others.map((one) => html`<tr key=${keyOf(one)}><td>${named && html`<${Kernel} name=${one.kernel} />`}<code>${plain(one.id)}</code></td>
				<td><span class="mark ${one.state === 'refused' ? 'denied' : one.state === 'expired' ? 'over' : 'ok'}">${plain(one.state)}</span></td>
				<td>${one.who}</td><td><b>${one.type}</b></td><td>${one.rule}</td>
				<td>${one.decided ? `${momentText(one.decided)} by ${one.via}` : ''}${one.why && ` · ${one.why}`}${one.advisory ? ' · advisory' : ''}</td></tr>`)}</tbody></table></div>`}
	</section>`;
}

function Question({ question, named, go, say, again }) {
	const [span, setSpan] = useState('');
	const [why, setWhy] = useState('');
	const [error, setError] = useState(null);
	const [busy, setBusy] = useState(false);
	const [now, tick] = useState(Date.now());
	useEffect(() => {
		const timer = setInterval(() => tick(Date.now()), 1000);
		return () => clearInterval(timer);
	}, []);
	const decide = async (decision) => {
		setBusy(true);
		setError(null);
		try {
			await call('Approval.Decide', {
				id: question.id, decision, ...(why && { why }), ...(decision === 'approve' && span && { for_seconds: Number(span) }),
			});
			say(`${decision === 'approve' ? 'Approved' : 'Refused'}: ${question.type} of ${question.who}`);
			again();
		} catch (err) {
			setError(err);
		}
		setBusy(false);
	};
	const field = `why-${question.id}`;
	return html`<article class="card question" aria-label="Question ${question.id}">
		<header><h2>${named && html`<${Kernel} name=${question.kernel} />`}${question.who} asks for <b>${question.type}</b></h2><span class="faint">${spanText(question.expires - now)} left</span></header>
		<p>Rule <code>${question.rule}</code>${question.exhausted && html` · more ${question.exhausted} than its budget has left`}
			${question.advisory && html` · <b>advisory</b>: the kernel does not confine this agent, which could answer itself`}</p>
		<${Json} text=${question.data} label="Data of the call" />
		${question.binding && html`<p>The approval ${question.binding}.</p>`}
		<p class="faint digest">SHA-256 <code>${question.digest}</code> · question <code>${question.id}</code></p>
		<${Problem} error=${error} />
		${question.kernel ? html`<p class="faint">It is decided at ${nameOf(question.kernel)}: ${/^q-\d+$/.test(question.id) && html`<code>pwos approve ${question.id}</code> there, or `}in its console.</p>` : html`<div class="buttons">
			<label>Approve <select value=${span} onChange=${(event) => setSpan(event.target.value)}>${SPANS.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select></label>
			<label for=${field}>Reason</label><input id=${field} type="text" maxlength="1024" value=${why} placeholder="optional; the agent is told" onInput=${(event) => setWhy(event.target.value)} />
			<span class="grow"></span>
			<button type="button" onClick=${() => go('processes', { pid: question.pid })}>Process</button>
			<button type="button" class="danger" disabled=${busy} onClick=${() => decide('refuse')}>Refuse</button>
			<button type="button" class="primary" disabled=${busy} onClick=${() => decide('approve')}>Approve</button>
		</div>`}
	</article>`;
}
