// The newest entries of the record: a window, filled by a stream that goes on where it was cut.
import { lines, loggedIn } from './api.js';

const MOST = 20000; // rows that are kept
const SLACK = 2000; // beyond them, so that not every new row moves all
const SPAN = 300; // seconds of which rates are kept
const PAUSE = 100; // ms between two notices to those that show rows
const SLICE = 8; // ms of work before input is let in

const listeners = new Set();
const triggers = new Set();

// state is what is shown. rows are in the order of the record; version changes with them.
export const state = { rows: [], version: 0, live: 'connecting', why: '', last: 0, dropped: 0, seconds: [] };

let notice = 0;

function changed() {
	state.version++;
	notice ||= setTimeout(() => {
		notice = 0;
		for (const listener of listeners) {
			listener(state.version);
		}
	}, PAUSE);
}

// watch calls a function after changes, until what it returns is called.
export function watch(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

// on calls a function for each new row, until what it returns is called.
export function on(trigger) {
	triggers.add(trigger);
	return () => triggers.delete(trigger);
}

function count(row) {
	if (row.own || row.internal) {
		return;
	}
	const at = Math.floor(row.time / 1000);
	const { seconds } = state;
	let bucket = seconds.at(-1);
	if (bucket === undefined || at > bucket.at) {
		bucket = { at, calls: 0, denied: 0 };
		seconds.push(bucket);
		if (seconds.length > SPAN) {
			seconds.shift();
		}
	}
	bucket.calls++;
	if (row.status === 'denied') {
		bucket.denied++;
	}
}

function add(row) {
	state.rows.push(row);
	state.last = row.seq;
	if (state.rows.length > MOST + SLACK) {
		state.rows = state.rows.slice(SLACK);
		state.dropped += SLACK;
	}
	count(row);
	for (const trigger of triggers) {
		trigger(row);
	}
}

// older puts rows before those that there are.
export function older(rows) {
	const first = state.rows[0]?.seq ?? Infinity;
	state.rows = rows.filter((row) => row.seq < first).concat(state.rows);
	changed();
}

const breath = () => new Promise((resolve) => {
	const { port1, port2 } = new MessageChannel();
	port1.onmessage = resolve;
	port2.postMessage(0);
});

function set(live, why = '') {
	if (state.live !== live || state.why !== why) {
		state.live = live;
		state.why = why;
		changed();
	}
}

// follow reads the stream until the page has no session, and begins again where it was cut.
export async function follow(signal) {
	let pause = 250;
	while (loggedIn() && !signal.aborted) {
		try {
			let until = performance.now() + SLICE;
			for await (const row of lines(state.last ? state.last + 1 : undefined, signal)) {
				set('live');
				pause = 250;
				if (row?.end !== undefined) {
					throw new Error(row.end);
				}
				if (row !== null) {
					add(row);
					changed();
				}
				if (performance.now() > until) {
					await breath();
					until = performance.now() + SLICE;
				}
			}
			set('away', 'the kernel has closed the stream');
		} catch (err) {
			if (signal.aborted) {
				return;
			}
			set('away', err.message);
		}
		await new Promise((resolve) => setTimeout(resolve, pause));
		pause = Math.min(pause * 2, 8000);
	}
}

// rates are calls and refusals a second, one column a second up to now, for a plot.
export function rates(now = Date.now()) {
	const end = Math.floor(now / 1000);
	const bySecond = new Map(state.seconds.map((bucket) => [bucket.at, bucket]));
	const times = [];
	const calls = [];
	const denied = [];
	for (let at = end - SPAN + 1; at <= end; at++) {
		times.push(at);
		calls.push(bySecond.get(at)?.calls ?? 0);
		denied.push(bySecond.get(at)?.denied ?? 0);
	}
	return [times, calls, denied];
}
