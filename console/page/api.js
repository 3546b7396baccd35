// The session of this page, and the server's routes.

const KEY = 'pwos.token'; // in sessionStorage: of this tab and this origin alone, and no cookie

let token = sessionStorage.getItem(KEY);
let ended = () => {};

// Failure is an answer that is an error: its message is for people, its id for programs.
export class Failure extends Error {
	constructor({ id, code, message }) {
		super(message);
		this.id = id;
		this.code = code;
	}
}

// onEnd sets what is called when the server knows our session no more.
export function onEnd(then) {
	ended = then;
}

export const loggedIn = () => token !== null;

async function request(path, { body, signal } = {}) {
	const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
	if (body !== undefined) {
		headers['Content-Type'] = 'application/json';
	}
	let response;
	try {
		response = await fetch(path, {
			method: body === undefined ? 'GET' : 'POST', headers, body, signal,
			cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer',
		});
	} catch (err) {
		if (err.name === 'AbortError') {
			throw err;
		}
		throw new Failure({ id: 'console.away', code: 0, message: 'pwos console does not answer: it may have ended' });
	}
	if (response.ok) {
		return response;
	}
	const failure = await response.json().then((value) => value.error, () => null);
	if (response.status === 401 && failure?.id === 'console.login') {
		forget();
		ended();
	}
	throw new Failure(failure ?? { id: '', code: response.status, message: `the server answered ${response.status}` });
}

function forget() {
	token = null;
	sessionStorage.removeItem(KEY);
}

// login exchanges the secret of a link, which is good once, for the token of this page.
export async function login(secret) {
	forget();
	const response = await request('/api/login', { body: JSON.stringify({ secret }) });
	({ token } = await response.json());
	sessionStorage.setItem(KEY, token);
}

export async function logout() {
	try {
		await request('/api/logout', { body: '{}' });
	} finally {
		forget();
		ended();
	}
}

// get reads one of the server's own views.
export async function get(path, query = {}, signal) {
	const params = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== ''));
	const response = await request(params.size ? `${path}?${params}` : path, { signal });
	return response.json();
}

// logOf reads the entries of a log that fit a filter, page by page, up to a number.
export async function logOf(query, signal, most = 1000) {
	const rows = [];
	for (let since = query.since_seq ?? 0; ;) {
		const page = await get('/api/log', { ...query, since_seq: since, limit: most - rows.length }, signal);
		for (const row of page.rows) {
			rows.push(Object.assign(row, { kernel: query.kernel ?? '' }));
		}
		if (!(page.next > since) || page.rows.length === 0 || rows.length >= most) {
			return rows;
		}
		since = page.next;
	}
}

// call calls a syscall as the operator; the server knows which ones a page may call. Of another kernel only queries are answered.
export async function call(type, data = {}, signal, kernel = '') {
	const response = await request(`/api/call/${type}${kernel && `?kernel=${kernel}`}`, { body: JSON.stringify(data), signal });
	return (await response.json()).data;
}

// past reads the state as of an entry, and tells how far that is.
export async function past(query, progress, signal) {
	const response = await request(`/api/past?${new URLSearchParams(query)}`, { signal });
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = '';
	for (;;) {
		const { value, done } = await reader.read();
		const parts = (rest + (value ?? '')).split('\n');
		rest = done ? '' : parts.pop();
		for (const line of parts.filter((part) => part !== '').map((part) => JSON.parse(part))) {
			if (line.error) {
				throw new Failure(line.error);
			}
			if (line.facts) {
				return line;
			}
			progress(line);
		}
		if (done) {
			throw new Failure({ id: 'console.away', code: 0, message: 'the answer was cut short' });
		}
	}
}

// lines yields the rows of the record from an entry on, or null where nothing has come for a while.
export async function* lines(since, signal) {
	const response = await request(since === undefined ? '/api/events' : `/api/events?since=${since}`, { signal });
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = '';
	for (;;) {
		const { value, done } = await reader.read();
		if (done) {
			return;
		}
		const parts = (rest + value).split('\n');
		rest = parts.pop();
		for (const part of parts) {
			yield part === '' ? null : JSON.parse(part);
		}
	}
}
