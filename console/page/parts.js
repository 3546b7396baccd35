// Parts that several views are made of.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { Kernel, nameOf } from './kernels.js';
import * as record from './record.js';
import { numberText, pretty, timeText, tookText } from './text.js';

// useRecord has a view shown again when the record has changed.
export function useRecord() {
	const [, show] = useState(0);
	useEffect(() => record.watch(show), []);
	return record.state;
}

// useLoad reads something, again whenever key changes or again() is called. While it reads, what was there before stays.
export function useLoad(read, key) {
	const [state, set] = useState({ value: null, error: null, busy: true });
	const [turn, again] = useState(0);
	useEffect(() => {
		const ending = new AbortController();
		set((before) => ({ ...before, busy: true }));
		read(ending.signal).then(
			(value) => ending.signal.aborted || set({ value, error: null, busy: false }),
			(error) => ending.signal.aborted || set((before) => ({ ...before, error, busy: false })),
		);
		return () => ending.abort();
	}, [key, turn]);
	return { ...state, again: () => again((n) => n + 1) };
}

// useEach is useLoad for several kernels at once: what each has answered, {kernel, value}, and the errors of those that are not
// known to be away. It reads again when one has come back.
export function useEach(kernels, read, key) {
	const away = kernels.filter((kernel) => record.feeds.get(kernel)?.live === 'away');
	const { value, error, busy, again } = useLoad((signal) => Promise.all(kernels.map((kernel) =>
		read(kernel, signal).then((value) => ({ kernel, value }), (error) => ({ kernel, error })))), JSON.stringify([key, kernels, away]));
	const all = value ?? [];
	return {
		answers: all.filter((one) => one.error === undefined && kernels.includes(one.kernel)),
		errors: error ? [{ kernel: '', error }] : all.filter((one) => one.error !== undefined && !away.includes(one.kernel) && kernels.includes(one.kernel)),
		loaded: value !== null, busy, again,
	};
}

// Problems are the errors of kernels, each with its name where there are several.
export const Problems = ({ errors }) => errors.map(({ kernel, error }) => html`<p key=${kernel} class="problem" role="alert">
	${kernel && html`<b>${nameOf(kernel)}</b>: `}${error.message}</p>`);

// useRefresh calls again when a row of interest has come, at most once in a while. What the page asks itself is none.
export function useRefresh(again, interesting, pause = 1000) {
	const latest = useRef(again);
	latest.current = again;
	useEffect(() => {
		let timer = 0;
		const stop = record.on((row) => {
			if (!row.own && interesting(row)) {
				timer ||= setTimeout(() => {
					timer = 0;
					latest.current();
				}, pause);
			}
		});
		return () => {
			stop();
			clearTimeout(timer);
		};
	}, []);
}

const MARKS = { ok: 'ok', denied: 'denied', failed: 'failed', running: 'running', unknown: 'unknown' };

export const Mark = ({ status }) => html`<span class="mark ${MARKS[status] ?? 'unknown'}">${status}</span>`;

export const Problem = ({ error }) => error && html`<p class="problem" role="alert">${error.message}</p>`;

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

// Json shows a JSON text as it is, laid out.
export const Json = ({ text, label }) => html`<pre class="json" tabindex="0" role="group" aria-label=${label}>${pretty(text)}</pre>`;

// RowCells are the cells of a call in a list.
export function RowCells({ row, named }) {
	return html`
		<span role="gridcell" class="seq">${row.seq}</span>
		<span role="gridcell" class="time">${timeText(row.time)}</span>
		<span role="gridcell" class="who">${named && html`<${Kernel} name=${row.kernel} />`}${row.who}</span>
		<span role="gridcell" class="what"><b>${row.type}</b> ${row.asked}${row.outcome && html`<span class="came"> → ${row.outcome}</span>`}</span>
		<span role="gridcell" class="took">${row.us > 0 && tookText(row.us)}</span>
		<span role="gridcell" class="verdict"><${Mark} status=${row.status} /></span>`;
}

// Rows is a list of which only what is in sight is made. Arrow keys choose a row, Enter opens it.
export function Rows({ rows, keyOf, render, height = 28, chosen, onChoose, label, follow, onFollow, className = '' }) {
	const box = useRef(null);
	const [top, setTop] = useState(0);
	const [room, setRoom] = useState(600);
	const anchor = useRef(null);
	useLayoutEffect(() => {
		const seen = new ResizeObserver(() => setRoom(box.current.clientHeight));
		seen.observe(box.current);
		return () => seen.disconnect();
	}, []);
	useLayoutEffect(() => { // what is in sight stays there while rows come and go
		const el = box.current;
		if (follow) {
			el.scrollTop = rows.length * height;
		} else if (anchor.current !== null) {
			const at = rows.findIndex((row) => keyOf(row) === anchor.current.key);
			if (at >= 0) {
				el.scrollTop = at * height + anchor.current.offset;
			}
		}
	}, [rows, follow, room]);
	const scrolled = () => {
		const el = box.current;
		const first = rows[Math.floor(el.scrollTop / height)];
		anchor.current = first === undefined ? null : { key: keyOf(first), offset: el.scrollTop % height };
		setTop(el.scrollTop);
		const atEnd = el.scrollTop + el.clientHeight >= rows.length * height - height;
		if (onFollow && atEnd !== follow) {
			onFollow(atEnd);
		}
	};
	const first = Math.max(0, Math.floor(top / height) - 8);
	const last = Math.min(rows.length, Math.ceil((top + room) / height) + 8);
	const at = rows.findIndex((row) => keyOf(row) === chosen);
	const go = (to) => {
		const next = Math.min(rows.length - 1, Math.max(0, to));
		if (rows[next] === undefined) {
			return;
		}
		const el = box.current;
		if (next * height < el.scrollTop) {
			el.scrollTop = next * height;
		} else if ((next + 1) * height > el.scrollTop + el.clientHeight) {
			el.scrollTop = (next + 1) * height - el.clientHeight;
		}
		onChoose(keyOf(rows[next]), rows[next]);
	};
	useLayoutEffect(() => { // one that was chosen elsewhere comes into sight
		const el = box.current;
		if (at >= 0 && (at * height < el.scrollTop || (at + 1) * height > el.scrollTop + el.clientHeight)) {
			el.scrollTop = Math.max(0, at * height - el.clientHeight / 3);
		}
	}, [chosen, at >= 0]);
	const page = Math.max(1, Math.floor(room / height) - 1);
	const from = at < 0 ? (follow ? rows.length : first) : at;
	const steps = { ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: 0, End: rows.length - 1 };
	const pressed = (event) => {
		if (event.target !== box.current || !(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) {
			return;
		}
		event.preventDefault();
		go(steps[event.key]);
	};
	return html`
		<div ref=${box} class="rows ${className}" role="grid" aria-label=${label} aria-rowcount=${rows.length} tabindex="0"
			aria-activedescendant=${at >= first && at < last ? `row-${chosen}` : undefined} onScroll=${scrolled} onKeyDown=${pressed}>
			<div class="rows-all" style=${{ height: `${rows.length * height}px` }}>
				<div class="rows-part" style=${{ transform: `translateY(${first * height}px)` }}>
					${rows.slice(first, last).map((row, i) => html`
						<div key=${keyOf(row)} id=${`row-${keyOf(row)}`} role="row" aria-rowindex=${first + i + 1} aria-selected=${keyOf(row) === chosen}
							class="row ${row.status === 'denied' ? 'refused' : ''}" style=${{ height: `${height}px` }}
							onClick=${() => onChoose(keyOf(row), row)}>${render(row)}</div>`)}
				</div>
			</div>
		</div>`;
}

// Ask is a question before something is done. It is open while question is not null.
export function Ask({ question, onDone }) {
	const box = useRef(null);
	const [error, setError] = useState(null);
	const [busy, setBusy] = useState(false);
	useEffect(() => {
		if (question && !box.current.open) {
			setError(null);
			box.current.showModal();
		} else if (!question && box.current.open) {
			box.current.close();
		}
	}, [question]);
	const act = async () => {
		setBusy(true);
		try {
			await question.act();
			onDone(true);
		} catch (err) {
			setError(err);
		}
		setBusy(false);
	};
	return html`
		<dialog ref=${box} class="ask" aria-labelledby="ask-title" onCancel=${() => onDone(false)} onClose=${() => question && onDone(false)}>
			<h2 id="ask-title">${question?.title}</h2>
			${question?.body}
			<${Problem} error=${error} />
			<div class="buttons">
				<button type="button" onClick=${() => onDone(false)}>Cancel</button>
				<button type="button" class=${question?.danger ? 'danger' : 'primary'} disabled=${busy} onClick=${act}>${question?.verb}</button>
			</div>
		</dialog>`;
}

export const Meter = ({ label, share, text }) => html`
	<div class="meter"><span class="meter-label">${label}</span>
		<span class="meter-bar" role="img" aria-label="${label}: ${text}"><span style=${{ width: `${Math.min(100, Math.max(0, share * 100))}%` }}
			class=${share > 0.9 ? 'high' : share > 0.7 ? 'raised' : ''}></span></span>
		<span class="meter-text" aria-hidden="true">${text}</span></div>`;

export const Count = ({ n, label }) => n > 0 && html`<span class="count" aria-label="${numberText(n)} ${label}">${n > 999 ? '999+' : n}</span>`;
