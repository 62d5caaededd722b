// Numbers, times and words as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const UNITS = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 30],
  ["month", 12],
  ["year", Infinity],
];

export const count = (value) => (value < 100_000 ? whole : compact).format(value);
export const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
export const similarity = (value) => value.toFixed(4);
export const time = (date) => clock.format(date);
export const when = (text) => (text ? moment.format(new Date(text)) : "never");
export const words = (slug) => slug.replaceAll("_", " ");
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

export function milliseconds(value) {
  if (value >= 1000) return `${(value / 1000).toPrecision(3)} s`;
  return `${value >= 10 ? whole.format(value) : value.toPrecision(2)} ms`;
}

export function ago(text) {
  let span = (new Date(text) - Date.now()) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(span) < size) return relative.format(Math.round(span), unit);
    span /= size;
  }
}
