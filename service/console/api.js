// The data API of the service that this page comes from.

const BASE = new URL("v1/caches", document.baseURI);
const KEY = "semcache-key";

/** A failure as the API told it (RFC 9457), or `unreachable` where nobody answered. */
export class Problem extends Error {
  constructor(code, detail) {
    super(detail);
    this.code = code;
  }
}

export function useKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

/** Call the API below /v1/caches; `path` is a list of parts. Raises Problem. */
export async function call(method, path, { query = {}, body, signal } = {}) {
  const url = new URL([BASE.href, ...path.map(encodeURIComponent)].join("/"));
  for (const [name, value] of Object.entries(query)) if (value !== null) url.searchParams.set(name, value);
  const key = sessionStorage.getItem(KEY);
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  if (body) headers["content-type"] = "application/json";
  const sent = { method, headers, body: body && JSON.stringify(body), signal, credentials: "omit", cache: "no-store" };
  let response, told;
  try {
    response = await fetch(url, sent);
    told = response.status === 204 ? null : await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("unreachable", "The service does not answer.");
  }
  if (!response.ok) throw new Problem(told.code, told.detail);
  return told;
}
