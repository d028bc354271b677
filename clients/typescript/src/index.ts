// What the package offers. Each name has its description where it is defined.

export { Tally } from "./client.js";
export type { AroundOptions, BoardOptions, ListOptions, ReadOptions, SubmitOptions } from "./client.js";
export { TallyError } from "./errors.js";
export type { FieldError } from "./errors.js";
export { EventStream } from "./events.js";
export type { EventOptions, TallyEvent } from "./events.js";
export { Pages } from "./pages.js";
export type { PageOf } from "./pages.js";
export { LocalStorage, MemoryStorage, SubmitQueue } from "./queue.js";
export type { FlushReport, QueueOptions, QueuedScore, QueueStorage } from "./queue.js";
export type { CallOptions, Query, RequestOptions, RetryOptions, TallyOptions } from "./transport.js";
export type * from "./types.js";
