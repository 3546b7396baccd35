// The record as it grows, with filters.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { logOf } from '../api.js';
import { html } from '../html.js';
import { keyOf } from '../kernels.js';
import { Empty, Problem, Problems, RowCells, Rows, useEach, useRecord } from '../parts.js';
import { merge, older, windowOf } from '../record.js';
import { numberText, plain } from '../text.js';

const PAGE = 500; // older entries that are read at a time

// matcher is the test that a filter stands for.
function matcher({ pid, type, verdict, text, own, correlation }) {
	const words = (text ?? '').toLowerCase().split(/\s+/).filter(Boolean);
	const prefix = (type ?? '').toLowerCase();
	return (row) => (own || !row.own) && (!pid || String(row.pid) === pid || row.who.toLowerCase() === pid.toLowerCase())
		&& (!prefix || row.type.toLowerCase().startsWith(prefix)) && (!verdict || row.status === verdict)
		&& (!correlation || row.correlation === correlation)
		&& (words.length === 0 || words.every((word) => textOf(row).includes(word)));
}

const texts = new WeakMap();

function textOf(row) {
	let text = texts.get(row);
	if (text === undefined) {
		text = `${row.seq} ${row.who} ${row.type} ${row.asked} ${row.outcome} ${row.error ?? ''}`.toLowerCase();
		texts.set(row, text);
	}
	return text;
}

export function Timeline({ place, go, kernels, named, open, chosen }) {
	const record = useRecord();
	const filter = place.query;
	const [follow, setFollow] = useState(true);
	const [reading, setReading] = useState(false);
	const [error, setError] = useState(null);
	const set = (change) => go('timeline', { ...filter, ...change });
	const lists = useMemo(() => kernels.map((kernel) => windowOf(kernel).rows.filter(matcher(filter))),
		[record.version, kernels.join(), JSON.stringify({ ...filter, seq: undefined })]);
	// A correlation may lie before the window: it is read from the log.
	const whole = useEach(filter.correlation ? kernels : [], (kernel, signal) => logOf({ kernel, correlation: filter.correlation }, signal), filter.correlation ?? '');
	const shown = useMemo(() => merge(kernels.map((kernel, i) => {
		const log = whole.answers.find((one) => one.kernel === kernel);
		return log ? joined(log.value.filter(matcher(filter)), lists[i]) : lists[i];
	})), [lists, whole.loaded && whole.answers.map((one) => one.value.length).join()]);
	const present = kernels.flatMap((kernel) => windowOf(kernel).rows.length).reduce((sum, n) => sum + n, 0);
	const begins = kernels.some((kernel) => windowOf(kernel).rows[0]?.seq > 1);
	useEffect(() => {
		if (chosen) {
			setFollow(false);
		}
	}, [chosen]);
	const readOlder = async () => {
		setReading(true);
		setError(null);
		try {
			for (const kernel of kernels) {
				await older(kernel, PAGE);
			}
		} catch (err) {
			setError(err);
		}
		setReading(false);
	};
	return html`<section class="view" aria-label="Timeline">
		<form class="filters" role="search" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
			<label>Text <input type="search" value=${filter.text ?? ''} placeholder="any word" onInput=${(event) => set({ text: event.target.value })} /></label>
			<label>Process <input type="text" size="8" value=${filter.pid ?? ''} placeholder="pid or name" onInput=${(event) => set({ pid: event.target.value })} /></label>
			<label>Type <input type="text" size="14" value=${filter.type ?? ''} placeholder="Memory." list="types" onInput=${(event) => set({ type: event.target.value })} /></label>
			<datalist id="types">${[...new Set(lists.flat().map((row) => row.type))].sort().slice(0, 300).map((type) => html`<option key=${type} value=${type} />`)}</datalist>
			<label>Verdict <select value=${filter.verdict ?? ''} onChange=${(event) => set({ verdict: event.target.value })}>
				<option value="">any</option>${['ok', 'denied', 'failed', 'running', 'unknown'].map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>
			<label class="check"><input type="checkbox" checked=${Boolean(filter.own)} onChange=${(event) => set({ own: event.target.checked ? '1' : '' })} /> operator's queries</label>
			${filter.correlation && html`<button type="button" class="chip" onClick=${() => set({ correlation: '' })} aria-label="Show all correlations again">
				correlation ${plain(filter.correlation.slice(0, 24))} ✕</button>`}
			<span class="grow"></span>
			<span class="faint" aria-live="off">${numberText(shown.length)} of ${numberText(present)}</span>
			<button type="button" disabled=${!begins || reading} onClick=${readOlder}>${reading ? 'Reading…' : 'Older'}</button>
			<button type="button" aria-pressed=${follow} onClick=${() => setFollow(!follow)}>Follow</button>
		</form>
		<${Problem} error=${error} /><${Problems} errors=${whole.errors} />
		${shown.length === 0 && html`<${Empty}>${emptyText(present, record.live)}<//>`}
		${shown.length > 0 && html`<${Rows} rows=${shown} keyOf=${(row) => keyOf(row.kernel, row.seq)} chosen=${chosen} onChoose=${(_, row) => open(row.seq, row.kernel)} label="Calls" follow=${follow} onFollow=${setFollow}
			className="calls" render=${(row) => html`<${RowCells} row=${row} named=${named} />`} />`}
	</section>`;
}

function emptyText(present, live) {
	if (present > 0) {
		return 'No call fits the filters.';
	}
	return live === 'live' ? 'Nothing has happened yet: pwos run -- PROGRAM starts an agent.' : 'Reading the record…';
}

// joined is two lists of rows of one kernel as one, in their order.
function joined(log, live) {
	const last = log.at(-1)?.seq ?? 0;
	return log.concat(live.filter((row) => row.seq > last));
}
