// What was refused, and what would let it through.
import { logOf } from '../api.js';
import { html } from '../html.js';
import { Kernel, keyOf } from '../kernels.js';
import { Empty, Problems, Rows, useEach, useRecord } from '../parts.js';
import { merge, windowOf } from '../record.js';
import { numberText, timeText } from '../text.js';

export function Denials({ kernels, named, open, chosen, grant }) {
	useRecord();
	const before = useEach(kernels, (kernel, signal) => logOf({ kernel, denied: 1 }, signal), 0);
	const rows = merge(kernels.map((kernel) => {
		const live = windowOf(kernel).rows;
		const old = before.answers.find((one) => one.kernel === kernel)?.value ?? [];
		return old.filter((row) => !(row.seq >= live[0]?.seq)).concat(live.filter((row) => row.status === 'denied'));
	})).reverse();
	return html`<section class="view" aria-label="Denials">
		<div class="filters"><span class="faint">${numberText(rows.length)} refused calls, the latest first</span></div>
		<${Problems} errors=${before.errors} />
		${rows.length === 0 && html`<${Empty}>No call was refused.<//>`}
		${rows.length > 0 && html`<${Rows} rows=${rows} keyOf=${(row) => keyOf(row.kernel, row.seq)} chosen=${chosen} onChoose=${(_, row) => open(row.seq, row.kernel)} label="Refused calls" height=${46} className="denials" render=${(row) => html`
			<span role="gridcell" class="seq">${row.seq}</span>
			<span role="gridcell" class="time">${timeText(row.time)}</span>
			<span role="gridcell" class="who">${named && html`<${Kernel} name=${row.kernel} />`}${row.who}</span>
			<span role="gridcell" class="what"><b>${row.type}</b> ${row.asked}<br /><span class="faint">${row.outcome}</span></span>
			<span role="gridcell" class="verdict">${row.grant && !row.kernel && html`<button type="button" onClick=${(event) => {
				event.stopPropagation();
				grant(row);
			}} aria-label="Grant ${row.type} to ${row.who}">Grant…</button>`}</span>`} />`}
	</section>`;
}
