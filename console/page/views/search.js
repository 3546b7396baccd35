// Full text over the whole record, the best first.
import { get } from '../api.js';
import { html } from '../html.js';
import { keyOf } from '../kernels.js';
import { Empty, Problems, RowCells, Rows, useEach } from '../parts.js';
import { numberText } from '../text.js';

export function Search({ place, go, kernels, named, open, chosen }) {
	const { query } = place.query;
	const { answers, errors, loaded, busy } = useEach(query ? kernels : [], (kernel, signal) => get('/api/search', { query, kernel }, signal), query ?? '');
	const rows = answers.flatMap(({ kernel, value }) => value.rows.map((row) => ({ ...row, kernel })));
	return html`<section class="view" aria-label="Search">
		<form class="filters" role="search" aria-label="Search the record" onSubmit=${(event) => { event.preventDefault(); go('search', { query: event.target.query.value }); }}>
			<label>Words <input type="search" name="query" size="36" maxlength="1024" value=${query ?? ''} placeholder=${'deploy "release notes" memo*'} /></label>
			<button type="submit" class="primary">Search</button>
			<span class="grow"></span>
			${query && loaded && html`<span class="faint" role="status">${busy ? 'searching…' : `${numberText(rows.length)} calls, the best${kernels.length > 1 ? ' of each kernel' : ''} first`}</span>`}
		</form>
		<${Problems} errors=${errors} />
		${!query && html`<${Empty}>All the words must be in a call; "words in quotes" one after the other; memo* stands for all that begin so.<//>`}
		${query && loaded && !busy && errors.length === 0 && rows.length === 0 && html`<${Empty}>No call has these words.<//>`}
		${rows.length > 0 && html`<${Rows} rows=${rows} keyOf=${(row) => keyOf(row.kernel, row.seq)} chosen=${chosen} onChoose=${(_, row) => open(row.seq, row.kernel)} label="Found calls" className="calls" render=${(row) => html`<${RowCells} row=${row} named=${named} />`} />`}
	</section>`;
}
