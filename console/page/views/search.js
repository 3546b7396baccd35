// Full text over the whole record, the best first.
import { get } from '../api.js';
import { html } from '../html.js';
import { Empty, Problem, RowCells, Rows, useLoad } from '../parts.js';
import { numberText } from '../text.js';

export function Search({ place, go, open, chosen }) {
	const { query } = place.query;
	const { value, error, busy } = useLoad((signal) => (query ? get('/api/search', { query }, signal) : Promise.resolve(null)), query ?? '');
	const rows = (!error && value?.rows) || [];
	return html`<section class="view" aria-label="Search">
		<form class="filters" role="search" aria-label="Search the record" onSubmit=${(event) => { event.preventDefault(); go('search', { query: event.target.query.value }); }}>
			<label>Words <input type="search" name="query" size="36" maxlength="1024" value=${query ?? ''} placeholder=${'deploy "release notes" memo*'} /></label>
			<button type="submit" class="primary">Search</button>
			<span class="grow"></span>
			${value && html`<span class="faint" role="status">${busy ? 'searching…' : `${numberText(rows.length)} calls, the best first`}</span>`}
		</form>
		<${Problem} error=${error} />
		${!query && html`<${Empty}>All the words must be in a call; "words in quotes" one after the other; memo* stands for all that begin so.<//>`}
		${query && value && !error && rows.length === 0 && html`<${Empty}>No call has these words.<//>`}
		${rows.length > 0 && html`<${Rows} rows=${rows} keyOf=${(row) => row.seq} chosen=${chosen} onChoose=${(seq) => open(seq)} label="Found calls" className="calls" render=${(row) => html`<${RowCells} row=${row} />`} />`}
	</section>`;
}
