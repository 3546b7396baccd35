// A plot in the colours of the page.
import uPlot from 'uplot';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { html } from '../html.js';

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const minute = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });

// Plot draws columns of numbers over time, in seconds. series are [label, name of a colour].
export function Plot({ title, data, series, height = 180 }) {
	const box = useRef(null);
	const plot = useRef(null);
	useLayoutEffect(() => {
		const axis = { stroke: () => colour('--faint'), grid: { stroke: () => colour('--line'), width: 1 }, ticks: { stroke: () => colour('--line'), width: 1 }, font: '11px system-ui' };
		plot.current = new uPlot({
			width: box.current.clientWidth, height, legend: { live: false }, cursor: { drag: { x: false, y: false } },
			scales: { x: { range: (_, low, high) => (high - low < 60 ? [high - 60, high] : [low, high]) }, y: { range: (_, low, high) => [Math.min(0, low), Math.max(1, high * 1.1)] } },
			axes: [{ ...axis, values: (_, splits) => splits.map((at) => minute.format(at * 1000)) }, { ...axis, size: 56 }],
			series: [{}, ...series.map(([label, name], i) => ({ label, stroke: () => colour(name), width: 1.5, points: { show: false }, fill: i === 0 ? () => colour('--wash') : undefined }))],
		}, data, box.current);
		const seen = new ResizeObserver(() => plot.current.setSize({ width: box.current.clientWidth, height }));
		seen.observe(box.current);
		const theme = new MutationObserver(() => plot.current.redraw(false));
		theme.observe(document.documentElement, { attributes: true });
		return () => {
			theme.disconnect();
			seen.disconnect();
			plot.current.destroy();
		};
	}, [series.length]);
	useEffect(() => plot.current.setData(data), [data]);
	const latest = series.map(([label], i) => `${label} ${data[i + 1].at(-1) ?? 0}`).join(', ');
	return html`<figure class="plot"><figcaption>${title}</figcaption><div ref=${box} class="plot-box" role="img" aria-label="${title}, at present: ${latest}"></div></figure>`;
}
