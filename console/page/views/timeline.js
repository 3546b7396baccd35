// The record as it grows, with filters.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { get } from '../api.js';
import { html } from '../html.js';
import { Empty, Problem, RowCells, Rows, useLoad, useRecord } from '../parts.js';
import { older } from '../record.js';
import { numberText } from '../text.js';

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

export function Timeline({ place, go, open, chosen }) {
	const record = useRecord();
	const filter = place.query;
	const [follow, setFollow] = useState(true);
	const [reading, setReading] = useState(false);
	const [error, setError] = useState(null);
	const set = (change) => go('timeline', { ...filter, ...change });
	const rows = useMemo(() => record.rows.filter(matcher(filter)), [record.version, JSON.stringify({ ...filter, seq: undefined })]);
	// A correlation may lie before the window: it is read from the log.
	const whole = useLoad((signal) => (filter.correlation ? get('/api/log', { correlation: filter.correlation, limit: 1000 }, signal) : Promise.resolve(null)), filter.correlation ?? '');
	const shown = filter.correlation && whole.value ? merge(whole.value.rows.filter(matcher(filter)), rows) : rows;
	useEffect(() => {
		if (chosen) {
			setFollow(false);
		}
	}, [chosen]);
	const readOlder = async () => {
		setReading(true);
		setError(null);
		try {
			const first = record.rows[0]?.seq ?? 1;
			older((await get('/api/log', { since_seq: Math.max(0, first - 1 - PAGE), limit: PAGE })).rows);
		} catch (err) {
			setError(err);
		}
		setReading(false);
	};
	const first = record.rows[0]?.seq ?? 1;
	return html`<section class="view" aria-label="Timeline">
		<form class="filters" role="search" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
			<label>Text <input type="search" value=${filter.text ?? ''} placeholder="any word" onInput=${(event) => set({ text: event.target.value })} /></label>
			<label>Process <input type="text" size="8" value=${filter.pid ?? ''} placeholder="pid or name" onInput=${(event) => set({ pid: event.target.value })} /></label>
			<label>Type <input type="text" size="14" value=${filter.type ?? ''} placeholder="Memory." list="types" onInput=${(event) => set({ type: event.target.value })} /></label>
			<datalist id="types">${[...new Set(record.rows.map((row) => row.type))].sort().map((type) => html`<option key=${type} value=${type} />`)}</datalist>
			<label>Verdict <select value=${filter.verdict ?? ''} onChange=${(event) => set({ verdict: event.target.value })}>
				<option value="">any</option>${['ok', 'denied', 'failed', 'running', 'unknown'].map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>
			<label class="check"><input type="checkbox" checked=${Boolean(filter.own)} onChange=${(event) => set({ own: event.target.checked ? '1' : '' })} /> operator's queries</label>
			${filter.correlation && html`<button type="button" class="chip" onClick=${() => set({ correlation: '' })} aria-label="Show all correlations again">
				correlation ${filter.correlation.slice(0, 24)} ✕</button>`}
			<span class="grow"></span>
			<span class="faint" aria-live="off">${numberText(shown.length)} of ${numberText(record.rows.length)}</span>
			<button type="button" disabled=${first <= 1 || reading} onClick=${readOlder}>${reading ? 'Reading…' : 'Older'}</button>
			<button type="button" aria-pressed=${follow} onClick=${() => setFollow(!follow)}>Follow</button>
		</form>
		<${Problem} error=${error ?? whole.error} />
		${shown.length === 0 && html`<${Empty}>${emptyText(record)}<//>`}
		${shown.length > 0 && html`<${Rows} rows=${shown} keyOf=${(row) => row.seq} chosen=${chosen} onChoose=${(seq) => open(seq)} label="Calls" follow=${follow} onFollow=${setFollow}
			className="calls" render=${(row) => html`<${RowCells} row=${row} />`} />`}
	</section>`;
}

function emptyText({ rows, live }) {
	if (rows.length > 0) {
		return 'No call fits the filters.';
	}
	return live === 'live' ? 'Nothing has happened yet: pwos run -- PROGRAM starts an agent.' : 'Reading the record…';
}

// merge is two lists of rows as one, in their order.
function merge(log, live) {
	const last = log.at(-1)?.seq ?? 0;
	return log.concat(live.filter((row) => row.seq > last));
}
