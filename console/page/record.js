// The newest entries of the record: a window, filled by a stream that goes on where it was cut.
import { get, lines, logOf, loggedIn } from './api.js';

const MOST = 20000; // rows that are kept
const SLACK = 2000; // beyond them, so that not every new row moves all
const SPAN = 300; // seconds of which rates are kept
const PAUSE = 100; // ms between two notices to those that show rows
const SLICE = 8; // ms of work before input is let in
const LOOK = 3000; // ms between two questions to another kernel
const FIRST = 200; // entries of another kernel that the page begins with
const BEYOND = Number.MAX_SAFE_INTEGER; // an entry that no record has

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
	row.kernel = '';
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

// windowOf is what there is of the record of a kernel.
export const windowOf = (kernel) => (kernel ? feeds.get(kernel) ?? { rows: [] } : state);

// older reads some entries before those that there are of a kernel.
export async function older(kernel, many) {
	const first = windowOf(kernel).rows[0]?.seq ?? 1;
	const rows = await logOf({ kernel, since_seq: Math.max(0, first - 1 - many) }, undefined, many);
	const window = windowOf(kernel);
	window.rows = rows.filter((row) => row.seq < (window.rows[0]?.seq ?? Infinity)).concat(window.rows);
	changed();
}

// feeds are the newest entries of other kernels, by name. They are asked for while somebody looks.
export const feeds = new Map();

function feedOf(name) {
	if (!feeds.has(name)) {
		feeds.set(name, { rows: [], last: undefined, live: 'connecting', why: '' });
	}
	return feeds.get(name);
}

// read reads what has come since the last time. A kernel cannot take back what was read, or repeat it.
async function read(name, feed, signal) {
	if (feed.last === undefined) {
		const { end } = await get('/api/log', { kernel: name, since_seq: BEYOND, limit: 1 }, signal);
		feed.last = Math.max(0, end - FIRST);
	}
	for (let more = true; more;) {
		const since = feed.last;
		const page = await get('/api/log', { kernel: name, since_seq: since, limit: 1000 }, signal);
		for (const row of page.rows) {
			if (Number.isSafeInteger(row.seq) && row.seq > feed.last) {
				row.kernel = name;
				feed.last = row.seq;
				feed.rows.push(row);
				for (const trigger of triggers) {
					trigger(row);
				}
			}
		}
		if (feed.rows.length > MOST / 4) {
			feed.rows = feed.rows.slice(-MOST / 4);
		}
		more = page.next > 0 && feed.last > since;
	}
}

// resting waits, until the page is in sight.
async function resting(ms, signal) {
	await new Promise((resolve) => {
		const timer = setTimeout(resolve, ms);
		signal.addEventListener('abort', () => {
			clearTimeout(timer);
			resolve();
		}, { once: true });
	});
	while (document.visibilityState === 'hidden' && !signal.aborted) {
		await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
	}
}

// look asks another kernel for its newest entries, again and again. One that is away is asked less and less often.
export async function look(name, signal) {
	const feed = feedOf(name);
	for (let pause = LOOK; loggedIn() && !signal.aborted;) {
		const before = [feed.live, feed.why, feed.last].join();
		try {
			await read(name, feed, signal);
			[feed.live, feed.why, pause] = ['live', '', LOOK];
		} catch (err) {
			if (signal.aborted) {
				return;
			}
			[feed.live, feed.why, pause] = ['away', err.message, Math.min(pause * 1.5, 15000)];
		}
		if (before !== [feed.live, feed.why, feed.last].join()) {
			changed();
		}
		await resting(pause, signal);
	}
}

// merge is the rows of several kernels by time. Those of one kernel stay in their order, and of entries with the same time those of
// the first kernel are first. An effect, whose time is its end, is where it began.
export function merge(lists) {
	if (lists.length === 1) {
		return lists[0];
	}
	const heads = lists.map((rows) => ({ rows, at: 0, time: -Infinity }));
	const step = (head) => {
		const row = head.rows[head.at];
		if (row !== undefined) {
			head.time = Math.max(head.time, row.intent && row.us > 0 ? row.time - 1 - Math.floor(row.us / 1000) : row.time);
		}
	};
	heads.forEach(step);
	const all = [];
	for (;;) {
		let next;
		for (const head of heads) {
			if (head.at < head.rows.length && (next === undefined || head.time < next.time)) {
				next = head;
			}
		}
		if (next === undefined) {
			return all;
		}
		all.push(next.rows[next.at++]);
		step(next);
	}
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
