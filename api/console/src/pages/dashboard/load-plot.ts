/** One value at a time, in milliseconds. */
export interface Point {
  at: number;
  value: number;
}

/** A curve as paths of an image of WIDTH × HEIGHT. */
export interface Plot {
  line: string;
  area: string;
  /** The highest value. */
  peak: number;
}

export const WIDTH = 300;
export const HEIGHT = 56;
const HOUR = 60 * 60 * 1000;
/** Points further apart are not joined: nothing was measured in between. */
const GAP = 3 * 60 * 1000;

/** Draws the last hour up to the newest point. */
export function plot(points: Point[]): Plot {
  const peak = Math.max(0, ...points.map((point) => point.value));
  const end = points.at(-1)?.at ?? 0;
  const x = (at: number): string => (((at - end + HOUR) / HOUR) * WIDTH).toFixed(1);
  const y = (value: number): string =>
    (HEIGHT - 1 - (peak === 0 ? 0 : (value / peak) * (HEIGHT - 3))).toFixed(1);
  const parts: Point[][] = [];
  for (const point of points.filter((candidate) => candidate.at >= end - HOUR)) {
    const part = parts.at(-1);
    const last = part?.at(-1);
    if (part && last && point.at - last.at <= GAP) part.push(point);
    else parts.push([point]);
  }
  const lines = parts.map((part) => part.map(({ at, value }) => `${x(at)},${y(value)}`).join(' L'));
  const areas = parts.map((part, index) => {
    const [first, last] = [part[0]?.at ?? 0, part.at(-1)?.at ?? 0];
    return `M${x(first)},${String(HEIGHT)} L${lines[index] ?? ''} L${x(last)},${String(HEIGHT)} Z`;
  });
  return { line: lines.map((line) => `M${line}`).join(' '), area: areas.join(' '), peak };
}
