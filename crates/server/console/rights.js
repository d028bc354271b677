// What the caller may do. A page leaves out what the server would refuse; the server decides all the same.

import { get, key } from "./api.js";

/** The role and the scopes of the present key, and for which key they were read. */
let known = null;

/** Reads them once for each key. Without an answer nothing is left out. */
export async function readRights() {
  const present = key();
  if (known?.key === present) return;
  known = null;
  try {
    const { caller } = await get("/v1/status");
    known = caller ? { ...caller, key: present } : null;
  } catch {
    // The page shows why the server does not answer.
  }
}

/** Whether the caller has a scope, such as `boards:admin`. */
export function may(scope) {
  return known === null || known.scopes.includes(scope);
}

/** Whether the caller has the role admin. */
export function isAdmin() {
  return known === null || known.role === "admin";
}
