// Values as text.

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
const day = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric' });

// Another kernel may say that an entry is of any time.
const LAST = 8.64e15;

export const timeText = (ms) => (Math.abs(ms) > LAST ? String(ms) : `${clock.format(ms)}.${String(Math.floor(ms) % 1000).padStart(3, '0')}`);

export const momentText = (ms) => (Math.abs(ms) > LAST ? String(ms) : `${day.format(ms)}, ${timeText(ms)}`);

export const numberText = (n) => Number(n).toLocaleString('en');

export function tookText(us) {
	if (us < 1000) {
		return `${us} µs`;
	}
	return us < 1e6 ? `${(us / 1000).toFixed(us < 10000 ? 1 : 0)} ms` : `${(us / 1e6).toFixed(1)} s`;
}

export function spanText(ms) {
	const s = Math.max(0, Math.round(ms / 1000));
	if (s < 60) {
		return `${s} s`;
	}
	return s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

const hex = (code, digits) => code.toString(16).padStart(digits, '0');
const escaped = (c) => (c.codePointAt(0) > 0xffff ? `\\U${hex(c.codePointAt(0), 8)}` : `\\u${hex(c.codePointAt(0), 4)}`);

// plain is text of an agent's, in which nothing but what is drawn in its place is left: control and format characters are
// written out, as quote.Text does for what comes from the server.
export const plain = (text) => String(text).replace(/(\\*)([\p{Cc}\p{Cf}\p{Zl}\p{Zp}])|(\\+)(?=u[\da-fA-F]{4}|U[\da-fA-F]{8})/gu,
	(_, before, c, slashes) => (c === undefined ? slashes + slashes : before + before + escaped(c)));

// plainJSON is the same of a JSON text, which stays that text.
export const plainJSON = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => c.split('').map((unit) => `\\u${hex(unit.charCodeAt(0), 4)}`).join(''));

// pretty lays a JSON text out without reading its values: each number and each string stays as it was written.
export function pretty(json) {
	let out = '';
	let depth = 0;
	const line = () => `\n${'  '.repeat(depth)}`;
	for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g)) {
		if (token === '{' || token === '[') {
			depth++;
			out += token + line();
		} else if (token === '}' || token === ']') {
			depth--;
			out = /[[{]\s*$/.test(out) ? out.trimEnd() + token : out + line() + token;
		} else if (token === ',') {
			out += token + line();
		} else {
			out += token === ':' ? ': ' : token;
		}
	}
	return out;
}
