// What was refused, and what would let it through.
import { get } from '../api.js';
import { html } from '../html.js';
import { Empty, Problem, Rows, useLoad, useRecord } from '../parts.js';
import { numberText, timeText } from '../text.js';

export function Denials({ open, chosen, grant }) {
	const record = useRecord();
	const first = record.rows[0]?.seq;
	const before = useLoad((signal) => get('/api/log', { denied: 1, limit: 1000 }, signal), 0);
	const live = record.rows.filter((row) => row.status === 'denied');
	const old = (before.value?.rows ?? []).filter((row) => first === undefined || row.seq < first);
	const rows = old.concat(live).reverse();
	return html`<section class="view" aria-label="Denials">
		<div class="filters"><span class="faint">${numberText(rows.length)} refused calls, the latest first</span></div>
		<${Problem} error=${before.error} />
		${rows.length === 0 && html`<${Empty}>No call was refused.<//>`}
		${rows.length > 0 && html`<${Rows} rows=${rows} keyOf=${(row) => row.seq} chosen=${chosen} onChoose=${(seq) => open(seq)} label="Refused calls" height=${46} className="denials" render=${(row) => html`
			<span role="gridcell" class="seq">${row.seq}</span>
			<span role="gridcell" class="time">${timeText(row.time)}</span>
			<span role="gridcell" class="who">${row.who}</span>
			<span role="gridcell" class="what"><b>${row.type}</b> ${row.asked}<br /><span class="faint">${row.outcome}</span></span>
			<span role="gridcell" class="verdict">${row.grant && html`<button type="button" onClick=${(event) => {
				event.stopPropagation();
				grant(row);
			}} aria-label="Grant ${row.type} to ${row.who}">Grant…</button>`}</span>`} />`}
	</section>`;
}
