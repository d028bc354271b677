// Lists that come in pages.

/** One page of a list, and the cursor of the next one if there is one. */
export interface PageOf<T> {
  items: T[];
  next_cursor?: string;
}

/**
 * A list of the server. `for await` goes through all of it and asks for each page when it gets there.
 *
 *     for await (const entry of tally.scores("arcade")) …
 *     const ten = await tally.scores("arcade").take(10);
 */
export class Pages<T> implements AsyncIterable<T> {
  readonly #fetch: (cursor: string | undefined) => Promise<PageOf<T>>;

  constructor(fetch: (cursor: string | undefined) => Promise<PageOf<T>>) {
    this.#fetch = fetch;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.items;
  }

  /** The same page by page. */
  async *pages(): AsyncGenerator<PageOf<T>, void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.#fetch(cursor);
      yield page;
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }

  /** The first `count` items, or all if there are fewer. */
  async take(count: number): Promise<T[]> {
    const items: T[] = [];
    if (count <= 0) return items;
    for await (const item of this) {
      items.push(item);
      if (items.length >= count) break;
    }
    return items;
  }
}
