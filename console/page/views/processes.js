// The tree of processes, and what one of them is, holds and does.
import { useState } from 'preact/hooks';
import { call, get } from '../api.js';
import { html } from '../html.js';
import { Kernel, keyOf, nameOf } from '../kernels.js';
import { Empty, Mark, Meter, Problems, Rows, useEach, useLoad, useRecord, useRefresh } from '../parts.js';
import { windowOf } from '../record.js';
import { numberText, plain, timeText } from '../text.js';

const changes = (row) => row.type.startsWith('Process.') || row.type === 'Syscall.Spawn' || row.type === 'Syscall.Terminate';

export function Processes({ place, go, kernels, named, ask, say }) {
	const { answers, errors, loaded, again } = useEach(kernels, (kernel, signal) => get('/api/processes', { kernel }, signal), 0);
	useRefresh(again, changes, 500);
	const ended = place.query.ended === '1';
	const of = named ? ` of ${nameOf('')}` : '';
	const all = answers.flatMap(({ kernel, value }) => value.processes.map((one) => ({ ...one, kernel })));
	const shown = ended ? all : all.filter((one) => !one.ended);
	const pid = Number(place.query.pid) || undefined;
	const kernel = place.query.of ?? '';
	const chosen = all.find((one) => one.pid === pid && one.kernel === kernel);
	const choose = (next) => go('processes', { ...place.query, pid: next?.pid, of: next?.kernel });
	const everyone = (type, title, verb) => ask({
		title, verb, danger: type === 'Process.Pause', body: html`<p>This is about all agents of ${nameOf('') || 'this kernel'}.</p>`,
		act: async () => {
			const out = await call(type, { all: true });
			say(`${verb}: ${out.processes} processes`);
		},
	});
	return html`<section class="view" aria-label="Processes">
		<div class="filters">
			<label class="check"><input type="checkbox" checked=${ended} onChange=${(event) => go('processes', { ...place.query, ended: event.target.checked ? '1' : '' })} /> ended ones too</label>
			<span class="grow"></span>
			<span class="faint">${numberText(shown.length)} of ${numberText(all.length)}</span>
			${kernels.includes('') && html`<button type="button" onClick=${() => everyone('Process.Pause', 'Pause all agents?', 'Pause all')}>Pause all${of}</button>
			<button type="button" onClick=${() => everyone('Process.Resume', 'Have all agents go on?', 'Resume all')}>Resume all${of}</button>`}
		</div>
		<${Problems} errors=${errors} />
		${loaded && answers.length > 0 && shown.length === 0 && html`<${Empty}>No process lives: <code>pwos run -- PROGRAM</code> starts one.<//>`}
		<div class="split ${chosen ? 'open' : ''}">
			<${Rows} rows=${shown} keyOf=${(one) => keyOf(one.kernel, one.pid)} chosen=${chosen && keyOf(kernel, pid)} onChoose=${(_, one) => choose(one)} label="Processes" className="processes" render=${(one) => html`
				<span role="gridcell" class="seq">${one.pid}</span>
				<span role="gridcell" class="name" style=${{ paddingLeft: `${Math.min(one.depth, 12) * 16}px` }}>${one.depth > 0 && html`<span class="faint" aria-hidden="true">└ </span>`}${named && html`<${Kernel} name=${one.kernel} />`}<b>${one.name}</b></span>
				<span role="gridcell" class="state"><span class="mark ${one.ended ? 'over' : one.paused ? 'paused' : one.state.startsWith('BLOCKED') ? 'denied' : 'ok'}">${one.state.toLowerCase()}</span></span>
				<span role="gridcell" class="what">${one.intent || one.role}</span>
				<span role="gridcell" class="command">${one.command}</span>`} />
			${chosen && html`<${Process} key=${keyOf(chosen.kernel, chosen.pid)} process=${chosen} named=${named} go=${go} ask=${ask} say=${say} close=${() => choose(undefined)} />`}
		</div>
	</section>`;
}

// Acts are the buttons of a process. Another kernel does what its members file allows this one: ending what this one has spawned.
function Acts({ process, go, act }) {
	const { pid, name, kernel } = process;
	const kill = (data, body) => html`<button type="button" class="danger" onClick=${() => act('Syscall.Terminate', { ...data, reason: 'killed from the console' }, `Kill ${name}?`, 'Kill', true, body)}>Kill…</button>`;
	const calls = html`<button type="button" onClick=${() => go('timeline', { pid })}>Its calls</button>`;
	if (!kernel) {
		return html`<div class="buttons">
			${process.paused
				? html`<button type="button" onClick=${() => act('Process.Resume', { target_pid: pid }, `Have ${name} go on?`, 'Resume', false, html`<p>Pid ${pid} and its descendants go on where they were paused.</p>`)}>Resume…</button>`
				: html`<button type="button" onClick=${() => act('Process.Pause', { target_pid: pid }, `Pause ${name}?`, 'Pause', false, html`<p>Pid ${pid} and its descendants stop where they are, and their calls wait.</p>`)}>Pause…</button>`}
			${kill({ target_pid: pid }, html`<p>Pid ${pid} and its descendants end, and lose what they hold.</p>`)}${calls}
		</div>`;
	}
	const ours = name.startsWith(`kernel-${nameOf('')}/`);
	return html`<div class="buttons">
			${ours && kill({ target_pid: pid, kernel }, html`<p>Pid ${pid} of ${kernel} and its descendants end, if the members file there allows it.</p>`)}${calls}
		</div>
		<p class="faint">${ours ? html`${nameOf('')} has spawned it, and may end it: <code>pwos kill ${pid}@${kernel}</code>. The rest is done in the console of ${kernel}.`
			: html`${kernel} decides about it: use its console, or <code>pwos</code> there.`}</p>`;
}

function Process({ process, named, go, ask, say, close }) {
	const { pid, name, kernel } = process;
	useRecord();
	const token = useLoad((signal) => call('Capability.Get', { pid }, signal, kernel), keyOf(kernel, pid));
	const budget = useLoad((signal) => call('Budget.Show', {}, signal, kernel), keyOf(kernel, pid));
	useRefresh(token.again, (row) => row.kernel === kernel && (row.type.startsWith('Capability.') || row.type.startsWith('Resource.')));
	useRefresh(budget.again, (row) => row.kernel === kernel && row.pid === pid, 2000);
	const act = (type, data, title, verb, danger, body) => ask({
		title, verb, danger, body,
		act: async () => {
			await call(type, data);
			say(`${verb}: ${name} (${pid})`);
		},
	});
	const recent = windowOf(kernel).rows.filter((row) => row.pid === pid && !row.own).slice(-12).reverse();
	const allowed = token.value?.effective?.allowed_syscalls ?? [];
	const quotas = Object.entries(token.value?.effective?.resource_quotas ?? {});
	const own = budget.value?.budgets?.find((one) => one.pid === pid);
	const kinds = ['calls', 'fetches', 'tokens', 'usd'].filter((kind) => own?.[kind]);
	return html`<aside class="detail" aria-label=${`Process ${pid}${named ? ` of ${nameOf(kernel)}` : ''}`}>
		<header><h2>${named && html`<${Kernel} name=${kernel} />`}<span class="seq">${pid}</span> ${name}</h2><button type="button" class="close" aria-label="Close the process" onClick=${close}>✕</button></header>
		<div class="detail-body">
		${process.ended ? html`<p class="faint">${process.end ? `It ${process.end}.` : 'It has ended.'}</p>` : html`<${Acts} process=${process} go=${go} act=${act} />`}
		<dl class="facts">
			<dt>State</dt><dd>${process.state.toLowerCase()}</dd>
			<dt>Parent</dt><dd>${process.parent === 0 ? 'operator' : process.parent}</dd>
			${process.intent && html`<dt>Intent</dt><dd>${process.intent}</dd>`}
			${process.role && html`<dt>Role</dt><dd>${process.role}</dd>`}
			<dt>Priority</dt><dd>${process.priority.toLowerCase()}</dd>
			<dt>Born</dt><dd>tick ${process.born}</dd>
			${process.restarts !== undefined && html`<dt>Restarts</dt><dd>${process.restarts}</dd>`}
			${process.command && html`<dt>Command</dt><dd><code>${process.command}</code></dd>`}
		</dl>
		${kinds.length > 0 && html`<h3>Budget left</h3>${kinds.map((kind) => html`<${Meter} key=${kind} label=${kind}
			share=${1 - own[kind].left / (own[kind].given || 1)} text=${`${own[kind].left} of ${own[kind].given} left`} />`)}`}
		${quotas.length > 0 && html`<h3>Held</h3>${quotas.map(([resource, limit]) => html`<${Meter} key=${resource} label=${resource}
			share=${(token.value.held?.[resource] ?? 0) / (limit || 1)} text=${`${token.value.held?.[resource] ?? 0} of ${limit}`} />`)}`}
		${!process.ended && html`<h3>May call</h3>
			${token.error ? html`<p class="faint">${token.error.code === 404 ? 'Nothing: it has no grant.' : token.error.message}</p>` : html`
			<p class="chips">${allowed.map((one) => html`<code key=${one}>${plain(one)}</code>`)}${token.value && allowed.length === 0 && html`<span class="faint">nothing</span>`}</p>`}
			${token.value?.effective?.http && html`<p class="faint">fetches from</p><p class="chips">${token.value.effective.http.hosts.map((host) => html`<code key=${host}>${plain(host)}</code>`)}</p>`}`}
		${recent.length > 0 && html`<h3>Latest calls</h3><ul class="related">${recent.map((row) => html`<li key=${row.seq}>
			<button type="button" class="link" onClick=${() => go('timeline', { pid, seq: row.seq, of: kernel })}><span class="seq">${timeText(row.time)}</span> <b>${row.type}</b> ${row.asked}</button> <${Mark} status=${row.status} /></li>`)}</ul>`}
		</div>
	</aside>`;
}
